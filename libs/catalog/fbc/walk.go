package fbc

import (
	"io/fs"
	"path"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
)

// Walk calls each for every document of a catalog, in order of file and line, until its first error. What
// is wrong with documents, so that they are not among those, is in the findings. A bundle directory
// comes as the olm.bundle that an image of it would be rendered to (R-CAT-58), its manifests inline.
func Walk(fsys fs.FS, each func(Blob) error) (catalog.Findings, error) {
	var more catalog.Findings
	findings, err := load.Visit(fsys, func(d load.Document) error {
		if d.Bundle {
			b, f, err := readBundle(fsys, d.File)
			more = append(more, f...)
			if err != nil || b.Schema == "" {
				return err
			}
			return each(b)
		}
		return each(Blob{Schema: d.Schema, Package: d.Package, Name: d.Name, Raw: d.Raw})
	})
	return append(findings, more...), err
}

// readBundle renders one bundle directory. One that makes no bundle has findings instead.
func readBundle(fsys fs.FS, dir string) (Blob, catalog.Findings, error) {
	sub, err := fs.Sub(fsys, dir)
	if err != nil {
		return Blob{}, nil, err
	}
	f, findings := load.ReadBundle(sub, nil, "")
	for i := range findings {
		findings[i].File = path.Join(dir, findings[i].File)
	}
	if findings.Errors() > 0 {
		return Blob{}, findings, nil
	}
	b, err := FromBundle(f)
	return b, findings, err
}
