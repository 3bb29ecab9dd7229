// Package catalog holds the words of an operator catalog that indexer, resolver, gateway and
// installer must mean in the same way: package, channel, entry, bundle, property, and the update
// graph of a channel. It is pure: file-based catalogs are decoded from an io/fs.FS.
package catalog
