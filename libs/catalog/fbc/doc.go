// Package fbc is the file-based form of catalogs, document by document and as it is written: what tools
// for authors read, change and write. libs/catalog understands a catalog; this package keeps it whole.
package fbc
