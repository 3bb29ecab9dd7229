// Package compare says what an upgrade from one bundle to another changes for those who run it: which
// custom resource definitions lose versions, move their storage or narrow their schema (R-CRD-2 … R-CRD-8),
// and what the new version may do that the old one could not. It is pure; the indexer computes it along
// the edges of the update graph and stores it, approvals show it.
package compare
