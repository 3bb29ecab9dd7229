package catalog

import (
	"github.com/chandler-fleet/chandler/libs/catalog/internal/value"
)

// Bounds on what a catalog may hold. A hostile or broken catalog meets one of them and a finding that
// names it, never the end of the machine's memory (DESIGN D10). The largest real values seen stand beside.
const (
	// MaxFileBytes is the size of one file; published catalogs of hundreds of packages in one file have about 300 MB.
	MaxFileBytes = 1 << 30
	// MaxDocumentBytes is the size of one document; the largest real bundle has 6.8 MB of manifests, 9.1 MB as base64.
	MaxDocumentBytes = 32 << 20
	// MaxDocuments is the number of documents in one file; the largest real file has some 10,000.
	MaxDocuments = 100_000
	// MaxNesting is the depth of mappings and sequences in a document; real CRD schemas reach 45.
	MaxNesting = 200
	// MaxNodes is the number of values of one document with its aliases expanded, against YAML bombs.
	MaxNodes = 1_000_000
	// MaxCatalogBytes is the size of all files that are read of a catalog; the largest real tree has 570 MB.
	MaxCatalogBytes = 4 << 30
	// MaxNameBytes is the length of the name of a channel or bundle, as Kubernetes names have it; the longest real one
	// has 80.
	MaxNameBytes = 253
	// MaxBlobNameBytes is the length of any other name, schema or type. They are keys of an index, which takes some
	// 2,700.
	MaxBlobNameBytes = 1024
	// MaxDirectoryDepth is how deep directories may nest; real catalogs use 2, bundle directories 5.
	MaxDirectoryDepth = 16
	// MaxFiles is the number of files of a catalog; the largest real tree has 12,000.
	MaxFiles = 200_000
	// MaxIgnoreBytes is the size of one .indexignore file.
	MaxIgnoreBytes = 64 << 10
	// MaxConstraintBytes is the raw size of one olm.constraint (R-RES-29).
	MaxConstraintBytes = value.MaxConstraintBytes
	// MaxConstraintDepth is how many constraints may be inside each other (R-RES-29); real ones have two or three
	// levels.
	MaxConstraintDepth = value.MaxConstraintDepth
	// MaxRules is the number of different rules of the bundles of a package together (R-RES-26); real ones have a
	// handful.
	MaxRules = value.MaxRules
	// MaxBundleFiles is the number of files of one bundle directory; the largest real one has 60.
	MaxBundleFiles = 1_000
	// MaxBundleBytes is the size of all manifests of one bundle; the largest real one has 6.8 MB.
	MaxBundleBytes = 32 << 20
	// MaxMessageBytes is the length of one finding's text; the longest honest one lists some twenty names.
	MaxMessageBytes = 2_000
	// MaxFindings is how many findings a report keeps; the last one then says how many were left out.
	MaxFindings = 1_000
)
