// Package certs knows what the API server needs to call an operator: the certificates of its webhooks, aggregated APIs
// and conversions, where their CA stands, and who converts a CustomResourceDefinition (R-CSV-40..46). It issues and
// judges, decides what a CRD keeps of its former form (Keep), and keeps certificates in Secrets. It lies beside the
// stage serving, and not in it, since a scope holds certificates and former CRDs for all stages.
//
// Issue takes the keys and the time, so that the same input gives the same certificate. Each called Deployment has one
// Secret with a CA, and a certificate that this CA signed for the names of the Deployment's Service. The key of the CA
// is discarded after signing: a renewal creates a new CA. The CA bundle then also holds the former CA until it expires,
// so that pods with the former certificate are trusted while they are replaced.
package certs
