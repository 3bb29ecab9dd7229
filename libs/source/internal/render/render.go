// Package render makes an olm.bundle of bare manifests, as if they had come in a bundle image: sources
// that hold manifests without the files beside them share it.
package render

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/catalog/validate"
	"github.com/chandler-fleet/chandler/libs/source/internal/spool"
)

// Bundle reads manifests as a bundle of a package. Where Findings.Err is not nil there is none. Images
// that are no pull specifications are left out: a catalog with one would be refused whole (R-CAT-28).
func Bundle(pkg, image string, channels []string, manifests [][]byte) (load.BundleFile, catalog.Findings) {
	f, findings := load.ReadBundle(tree(manifests), map[string]string{
		catalog.AnnotationPackage:  pkg,
		catalog.AnnotationChannels: strings.Join(channels, ","),
	}, image)
	f.Bundle.RelatedImages = slices.DeleteFunc(f.Bundle.RelatedImages, func(r catalog.RelatedImage) bool {
		return validate.CheckImage(r.Image) != ""
	})
	return f, findings
}

// Document is the olm.bundle of a bundle that was read, with its manifests inside.
func Document(f load.BundleFile, manifests [][]byte) (spool.Bundle, error) {
	b := spool.Bundle{
		Schema: catalog.SchemaBundle, Package: f.Package, Name: f.Bundle.Name, Image: f.Bundle.Image,
		Properties: f.Bundle.Properties, RelatedImages: f.Bundle.RelatedImages,
	}
	err := b.Embed(manifests...)
	return b, err
}
