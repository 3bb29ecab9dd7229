// Package serving issues and checks what the API server needs to call an operator: the certificates of its webhooks and
// aggregated APIs, and their state in the cluster (R-CSV-40..46).
//
// It is pure. The caller generates the keys and passes the time, so that the same input gives the same certificate.
//
// Each called Deployment has one Secret with a CA, and a certificate that this CA signed for the names of the
// Deployment's Service. The key of the CA is discarded after signing: a renewal creates a new CA. The CA bundle then
// also holds the former CA until it expires, so that pods with the former certificate are trusted while they are
// replaced.
package serving
