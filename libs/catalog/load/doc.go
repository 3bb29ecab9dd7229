// Package load reads operator catalogs from a directory tree, an io/fs.FS, and joins what their files say of each
// package. Package validate checks what was joined.
//
// Every file is a stream of catalog documents, JSON or YAML (R-CAT-1 …
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
// Findings say all that is wrong, at once, each under the number of its requirement and with its place
// down to the value. An error forbids to serve the catalog; it is kept for what later steps rely on. A
// warning is served without the part that it names: a bundle directory that makes no bundle, manifests
// that cannot be installed. A lenient load serves the packages that no error speaks of, and lists the
// others as quarantined: see Catalog.Err and Quarantine.
//
// Where users install, a bundle is read as OLM's tools read it; where authors ask (catalog.Findings.Strict, "chandler
// catalog validate"), each row is an error. libs/bundle.Gather and libs/catalog/internal/docs hold the rules of the
// first part, libs/render those of the plan.
//
//	rule                                               where users install            OLM
//	a key twice in a manifest or metadata file         the last one, a warning        sigs.k8s.io/yaml: the last one
//	further documents in a manifest file               passed over, a warning         the first one alone is decoded
//	a file that is neither YAML nor JSON               passed over, a warning         passed over
//	a number that no reader holds                      passed over, a warning         passed over
//	a file that is no Kubernetes object (no kind)      passed over, a warning         passed over
//	y, n, on as keys or values, merge keys             YAML 1.1, a warning            YAML 1.1
//	a second ClusterServiceVersion                     passed over, a warning         the first one is taken
//	an object twice, with other content                the last one, a warning        written twice, the last one stays
//	annotations.yaml under another name                found by content, a warning    found by content
//	dependencies or properties that cannot be read     passed over, a warning         passed over
//	a CRD that the CSV owns and nobody brings          served, a warning              the CSV waits for it
//	no ClusterServiceVersion, or one that cannot       left out, a warning            no bundle
//	be decoded
//	an object without apiVersion or name               left out, a warning            its plan fails
//	no package annotation, another media type          left out, a warning            no bundle
//	a version that is no semantic version              left out, a warning            no catalog holds it
//	a property or constraint that cannot be read       left out, a warning            cannot be resolved
//	no channel                                         left out, a warning            cannot be subscribed to
//	a bound of limits.go                               left out, a warning            other bounds
//
// ReadBundle reads one bundle by itself, as an image or an author's directory holds it.
//
// Content is handed out bundle by bundle once it is canonical, and let go: all of it together would be most of the
// memory of a load.
package load
