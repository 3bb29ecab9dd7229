// Package registry reads a running catalog server, whatever program it is, through api.Registry
// (R-CAT-70), and makes a file-based catalog of its answers:
//
//	ListPackages, GetPackage    names, default channels, channels and heads, deprecations
//	ListBundles                 every entry of every channel with its edges, images and properties
//	GetBundle                   once for each bundle whose manifests the list leaves out
//	GetPackage again            the heads must still be the same; else the server changed meanwhile
//
// What comes out equals what the server was loaded from, as far as the API carries it. It does not
// carry:
//
//   - documents of other schemas (they are given out only to those who know the schema's name);
//   - properties of packages and channels;
//   - description and icon of a package: both are taken from the head of its default channel, whose CSV
//     for display bears the icon of the package, and its description where it has none of its own;
//   - bundles and entries that a server leaves out, and documents of packages without a channel;
//   - the images of a bundle with manifests, beyond those that its CSV lists.
//
// A stream that ends early, lacks a head that GetPackage names, or stalls, is refused whole.
//
// The API has no digest of a catalog. The fingerprint is one over everything that is listed, so that new
// edges behind an old head count too; a manifest that changed behind the same name and image does not.
// Probe costs the three calls that list, which a server answers from its index: about 3 KB a version.
package registry
