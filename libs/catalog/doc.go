// Package catalog is the model of an operator catalog that indexer, resolver, gateway and installer share: package,
// channel, entry, bundle, property, and the update graph of a channel. It is pure. Package load reads catalogs, package
// validate holds the rules that they must keep; what both find wrong are Findings.
//
// A Package is immutable and addressed by its digest; so is the content of a bundle. A catalog's revision is the set of
// its packages' digests.
//
// Catalogs are hostile until proven otherwise: limits.go holds every bound.
package catalog
