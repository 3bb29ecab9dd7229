// Package fbc is the file-based form of catalogs, document by document and as it is written: what tools
// for authors read, change and write. libs/catalog understands a catalog; this package keeps it whole.
//
// Write has one form for every value: the keys schema, package and name first, the others in order, lists
// as they are. So what is rendered, loaded and rendered again is the same, byte by byte. Documents of
// unknown schemas keep the order of their keys, since their bytes are their identity (R-CAT-8).
//
// Everything streams: no function holds more than one document, except where it is given them.
package fbc
