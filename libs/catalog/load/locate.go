package load

import (
	"bytes"
	"io/fs"
	"path"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/docs"
	"github.com/chandler-fleet/chandler/libs/catalog/validate"
)

// locate gives findings about values inside documents their line and column. Only documents that have
// such findings are read again; one that has changed meanwhile leaves the place of the document.
func locate(f catalog.Findings, fsys fs.FS) {
	byFile := map[string][]*catalog.Finding{}
	for i := range f {
		switch {
		case f[i].Spot == "":
		case f[i].Line == 0:
			locateInCSV(fsys, &f[i])
		default:
			byFile[f[i].File] = append(byFile[f[i].File], &f[i])
		}
		f[i].Scope = ""
	}
	for name, findings := range byFile {
		spots := make([]*docs.Spot, 0, len(findings))
		for _, at := range findings {
			spots = append(spots, &docs.Spot{Line: at.Line, Column: at.Column, Path: validate.SpotPath(*at)})
			at.Spot = ""
		}
		file, err := fsys.Open(name)
		if err != nil {
			continue // it was there a moment ago: the place of the document must do
		}
		err = docs.Locate(file, docLimits(), spots)
		if cerr := file.Close(); err != nil || cerr != nil {
			continue
		}
		for i, at := range findings {
			at.Line, at.Column = spots[i].Line, spots[i].Column
		}
	}
}

// locate gives all findings of the catalog their places.
func (c *Catalog) locate(fsys fs.FS) {
	locate(c.Findings, fsys)
	c.Findings.Sort()
	locate(c.blocking, fsys)
	firsts := make(catalog.Findings, 0, len(c.Quarantined))
	for _, q := range c.Quarantined {
		firsts = append(firsts, q.First)
	}
	locate(firsts, fsys)
	for i := range c.Quarantined {
		c.Quarantined[i].First = firsts[i]
	}
}

// locateInCSV finds the file, line and column of a key of the CSV in a bundle directory, or of a property
// of one of the files of metadata.
func locateInCSV(fsys fs.FS, f *catalog.Finding) {
	key := f.Spot
	f.Spot = ""
	if strings.HasPrefix(key, "olm.") && locateProperty(fsys, f, key) {
		return
	}
	manifests := path.Join(f.File, dirManifests)
	entries, err := fs.ReadDir(fsys, manifests)
	if err != nil || len(entries) > catalog.MaxBundleFiles {
		return
	}
	for _, e := range entries {
		name := path.Join(manifests, e.Name())
		if e.IsDir() {
			continue
		}
		text, err := readFile(fsys, name, catalog.MaxBundleBytes)
		if err != nil || !bytes.Contains(text, []byte("ClusterServiceVersion")) ||
			bytes.Contains(text, []byte("CustomResourceDefinition\n")) {
			continue
		}
		f.File = name
		if f.Line, f.Column = docs.LocateKey(text, key); f.Line == 0 {
			f.Line, f.Column = docs.LocateKey(text, "name")
		}
		return
	}
}

// locateProperty finds the first property of a type in the files of metadata that bring some; as a
// dependency it is written without the ending (R-CAT-56).
func locateProperty(fsys fs.FS, f *catalog.Finding, typ string) bool {
	for _, file := range []string{fileDependencies, fileProperties} {
		name := path.Join(f.File, dirMetadata, file)
		text, err := readFile(fsys, name, catalog.MaxBundleBytes)
		if err != nil {
			continue
		}
		wanted := typ
		if file == fileDependencies {
			wanted = strings.TrimSuffix(typ, ".required")
		}
		if at := bytes.Index(text, []byte(wanted)); at >= 0 {
			f.File = name
			f.Line = 1 + bytes.Count(text[:at], []byte("\n"))
			f.Column = at - bytes.LastIndexByte(text[:at], '\n')
			return true
		}
	}
	return false
}
