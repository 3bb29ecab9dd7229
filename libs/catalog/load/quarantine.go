package load

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/validate"
)

// Quarantine is a package that a lenient load left out.
type Quarantine struct {
	Package  string          `json:"package"`
	Findings int             `json:"findings"` // errors that made it so
	First    catalog.Finding `json:"first"`
}

// Err returns why the catalog must not be served, nil where it may. Of a lenient load those are the errors
// that belong to no package, and that no package is left: a catalog of sick packages alone is a sick one.
func (c *Catalog) Err() error {
	if c.lenient && len(c.Packages) > 0 {
		return c.blocking.Err()
	}
	return c.Findings.Err()
}

// quarantine takes every package out that an error speaks of, so that none is served by halves:
//
//	the error names a package          that package
//	a package without an olm.package   that name, and the one package that its directory speaks of: the
//	                                   name may be a slip of the pen
//	a file, document or directory      the one package that the directory speaks of, with all below it,
//	that cannot be read                or, where nothing there can be read, the one above it;
//	                                   in a tree with one package a file, the one that the file speaks of;
//	                                   in a tree with one package a directory, where nothing in this one
//	                                   can be read, the name of the directory
//	anything else, and what ended      none: nobody can tell which packages are whole, and the error
//	the reading of the tree            forbids to serve the catalog
func (c *Catalog) quarantine(parts []part, groups map[string]*group) {
	s := speechOf(parts, groups)
	out := map[string]*Quarantine{}
	c.Findings.Sort()
	for i := range c.Findings {
		f := &c.Findings[i]
		if f.Severity != catalog.SeverityError {
			continue
		}
		owners := s.owners(f)
		if len(owners) == 0 {
			c.blocking = append(c.blocking, *f)
		}
		for _, name := range owners {
			if f.Package == "" {
				f.Package = name
			}
			if out[name] == nil {
				out[name] = &Quarantine{Package: catalog.Storable(name), First: f.Bounded()}
			}
			out[name].Findings++
		}
	}
	c.blocking = c.blocking.Report()
	for _, name := range slices.Sorted(maps.Keys(out)) {
		c.Quarantined = append(c.Quarantined, *out[name])
		delete(c.digests, name)
	}
	packages := c.Packages[:0]
	for _, p := range c.Packages {
		if out[p.Name] == nil {
			packages = append(packages, p)
		}
	}
	c.Packages = packages
	blobs := c.Blobs[:0]
	for _, b := range c.Blobs {
		if b.Package == "" || out[b.Package] == nil {
			blobs = append(blobs, b)
		}
	}
	c.Blobs = blobs
}

// many stands for more than one package.
const many = "*"

// speech is which packages files and directories speak of. Only packages that have an olm.package, or
// are made of bundle directories, count.
type speech struct {
	real   map[string]bool
	files  map[string]string          // file -> package, or many
	dirs   map[string]string          // directory with all below -> package, or many
	of     map[string]map[string]bool // package -> its files
	byFile bool                       // every file speaks of one package at most
	byDir  bool                       // every package has a directory of its own
}

func speechOf(parts []part, groups map[string]*group) *speech {
	s := &speech{
		real: map[string]bool{}, files: map[string]string{}, dirs: map[string]string{},
		of: map[string]map[string]bool{},
	}
	for name, g := range groups {
		s.real[name] = name != "" && len(g.Packages) > 0
	}
	for _, p := range parts {
		for _, d := range p.packages {
			s.note(d.Body.Name, d.File, false)
		}
		for _, d := range p.channels {
			s.note(d.Package, d.File, false)
		}
		for _, d := range p.bundles {
			s.note(d.Package, d.File, d.Dir != "")
		}
		for _, d := range p.deprecations {
			s.note(d.Package, d.File, false)
		}
		for _, o := range p.others {
			s.note(o.blob.Package, o.File, false)
		}
	}
	s.byFile, s.byDir = true, len(s.of) > 0
	for _, pkg := range s.files {
		s.byFile = s.byFile && pkg != many
	}
	for pkg, files := range s.of {
		home := commonDir(files)
		s.byDir = s.byDir && home != "." && s.dirs[home] == pkg
	}
	return s
}

// note says that a file, or a bundle directory, speaks of a package.
func (s *speech) note(pkg, file string, dir bool) {
	if !s.real[pkg] {
		return
	}
	add := func(m map[string]string, key string) {
		if have, ok := m[key]; ok && have != pkg {
			m[key] = many
			return
		}
		m[key] = pkg
	}
	if s.of[pkg] == nil {
		s.of[pkg] = map[string]bool{}
	}
	if s.of[pkg][file] {
		return
	}
	s.of[pkg][file] = true
	add(s.files, file)
	if dir {
		add(s.dirs, file)
	}
	for d := path.Dir(file); ; d = path.Dir(d) {
		add(s.dirs, d)
		if d == "." || d == "/" {
			return
		}
	}
}

// commonDir is the deepest directory that holds all files.
func commonDir(files map[string]bool) string {
	common := ""
	for f := range files {
		d := path.Dir(f)
		if common == "" {
			common = d
		}
		for common != "." && d != common && !strings.HasPrefix(d, common+"/") {
			common = path.Dir(common)
		}
	}
	return common
}

// owners returns the packages that an error makes unreliable, none where that is not known.
func (s *speech) owners(f *catalog.Finding) []string {
	if f.Scope == validate.ScopeAll {
		return nil
	}
	dir := f.Scope
	if dir == "" {
		dir = path.Dir(f.File)
	}
	spoken := s.dirs[dir]
	for d := dir; spoken == "" && d != "."; {
		d = path.Dir(d)
		if spoken = s.dirs[d]; spoken == many {
			spoken = ""
			break
		}
	}
	switch {
	case s.real[f.Package]:
		return []string{f.Package}
	case f.Package != "" && (spoken == "" || spoken == many):
		return []string{f.Package}
	case f.Package != "":
		return []string{f.Package, spoken}
	case spoken != "" && spoken != many:
		return []string{spoken}
	}
	if pkg := s.files[f.File]; f.Scope == "" && s.byFile && pkg != "" && len(s.of[pkg]) == 1 {
		return []string{pkg}
	}
	if spoken == "" && s.byDir && dir != "." {
		return []string{path.Base(dir)}
	}
	return nil
}
