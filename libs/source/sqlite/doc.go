// Package sqlite reads index databases, the form of catalogs before file-based ones (R-CAT-75), and makes
// a file-based catalog of them (R-CAT-77). The tables changed over the years; what is there decides:
//
//	operatorbundle    name, csv, bundle (manifests, one JSON behind the other)
//	                  later: bundlepath (image), version, skiprange
//	package, channel  default channel, head
//	channel_entry     the update graph: an entry that another one is replaced by. The chain from the head
//	                  is "replaces"; what further entries of the same bundle replace is "skips"
//	api_provider, api_requirer, dependencies, properties, related_image, deprecated
//	                  what is known of a bundle beside its manifests; databases before them held the
//	                  manifests of every bundle, and are read from those
//
// Manifests become olm.bundle.object where a bundle has no image, as they are all that could be
// installed; else the display part of the CSV becomes olm.csv.metadata, where the CSV is there at all:
// databases of images kept it for heads alone. Description and icon of a package are those of the head of
// its default channel. A deprecated bundle keeps its property olm.deprecated (R-RES-14). Bundles in no
// channel are left out, and names in the graph that no row describes stay as names.
//
// A database is a program of its author: views, virtual tables and generated columns are not read, cells
// and rows are counted, and nothing is ever written.
package sqlite
