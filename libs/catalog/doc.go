// Package catalog holds the words of an operator catalog that indexer, resolver, gateway and
// installer must mean in the same way: package, channel, entry, bundle, property, and the update
// graph of a channel. It is pure: catalogs are read from an io/fs.FS.
//
// Load reads a directory tree. Every file is a stream of catalog documents, JSON or YAML (R-CAT-1 …
// R-CAT-8), except what an .indexignore excludes and what belongs to a bundle directory, which is
// {manifests, metadata/annotations.yaml}. The two sources join by package:
//
//   - A package that any document describes is a file-based one. Its channels are what the documents
//     say. A bundle without manifests of its own takes them from the bundle directory of its name, and
//     a channel entry that no olm.bundle describes takes the whole bundle from there.
//   - A package of bundle directories alone is made from their annotations and CSVs: see synthesise.
//
// Bundle directories come in two layouts: the community's {package/version/{manifests,metadata}}, where
// a ci.yaml beside the versions may say that edges come from the versions instead of the CSVs, and the
// legacy {*.package.yaml, version/ of manifests}, whose package manifest names the channels.
//
// Findings tell all that is wrong, at once, each under the number of its requirement and with its place
// down to the value. An error forbids to serve the catalog; it is kept for what later steps rely on. A
// warning is served without the part that it names: a bundle directory that makes no bundle, manifests
// that cannot be installed. A lenient load serves the packages that no error speaks of, and lists the
// others as quarantined: see Catalog.Err and Quarantine.
//
// ReadBundle reads one bundle by itself, as an image or an author's directory holds it.
//
// A Package is immutable and addressed by its digest; so is the content of a bundle, which Load hands
// out once it is canonical and lets go. A catalog's revision is the set of its packages' digests.
//
// Catalogs are hostile until proven otherwise: limits.go holds every bound.
package catalog
