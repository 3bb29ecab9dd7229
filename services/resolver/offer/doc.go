// Package offer makes what catalogs offer ready for resolution: the versions of operators in the order of
// their channels, what each provides, and what it asks for. All of it is read once for a package document,
// immutable from then on, and shared between resolutions and goroutines. Nothing here fails: what cannot be
// read is kept as a sentence, which matters only to who reaches it.
package offer
