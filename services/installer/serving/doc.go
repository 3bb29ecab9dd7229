// Package serving makes and judges what lets an API server call an operator: the certificates of its webhooks and
// aggregated APIs, and their state in the cluster (R-CSV-40..46).
//
// It is pure. Keys are drawn by the caller and the time is data, so the same input gives the same certificate.
//
// Each Deployment that is called has one Secret with a CA, and a certificate that this CA signed for the names of
// the Deployment's Service. The key of the CA is thrown away once it has signed: a renewal makes a new CA. The
// CA that is handed out then holds the former one, too, until that expires, so that pods which still serve the
// former certificate are trusted while they are replaced.
package serving
