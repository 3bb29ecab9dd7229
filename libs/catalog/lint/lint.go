// Package lint checks one bundle as its author does before publishing it (R-CAT-59): is it built as
// bundles must be, will it install, and does it follow good practice. It is pure: manifests and metadata
// come in as bytes, findings go out. Loading a catalog is milder and reads many bundles: see
// libs/catalog.
//
// Checks come in groups. Structure, CSV, CRD and Objects hold for every bundle; Hub, Practice and Other
// are asked for. Each check has an identifier that never changes, such as "R-CAT-59/csv-name".
package lint

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// Group is a set of checks that are switched on and off together.
type Group string

// The groups, as R-CAT-59 has its rows.
const (
	Structure Group = "structure"
	CSV       Group = "csv"
	CRD       Group = "crd"
	Objects   Group = "objects"
	Hub       Group = "hub"
	Practice  Group = "practice"
	Other     Group = "other"
)

// All returns every group.
func All() []Group { return []Group{Structure, CSV, CRD, Objects, Hub, Practice, Other} }

// Default returns the groups that are not optional.
func Default() []Group { return []Group{Structure, CSV, CRD, Objects} }

// ParseGroup reads the name of a group.
func ParseGroup(name string) (Group, error) {
	if g := Group(name); slices.Contains(All(), g) {
		return g, nil
	}
	var names []string
	for _, g := range All() {
		names = append(names, string(g))
	}
	return "", errs.New(errs.Invalid, "%q is no group of checks; there are %s", name, strings.Join(names, ", ")).At(
		"group", "R-CAT-59")
}

// Options choose what is checked.
type Options struct {
	// Groups are the checks to make; nil means Default.
	Groups []Group
	// Platforms are the platforms, such as "linux/arm64", of the images that the caller asked a registry
	// for. Labels of images that are not here are not compared with them.
	Platforms map[string][]string
}

// File is one file of a bundle, named by its path below the bundle's root.
type File struct {
	Name string
	Data []byte
}

// Bundle is what is linted: all files of manifests and of metadata.
type Bundle struct {
	Manifests, Metadata []File
}

// The directories of a bundle (R-CAT-50) and the file of its annotations.
const (
	dirManifests    = "manifests"
	dirMetadata     = "metadata"
	fileAnnotations = dirMetadata + "/annotations.yaml"
)

// Read reads the bundle at the root of fsys. What is missing is for Check to report; an error is what
// cannot be read, or is beyond the limits of a bundle.
func Read(fsys fs.FS) (Bundle, error) {
	left := int64(catalog.MaxBundleBytes)
	manifests, err := readDir(fsys, dirManifests, &left)
	if err != nil {
		return Bundle{}, err
	}
	metadata, err := readDir(fsys, dirMetadata, &left)
	return Bundle{Manifests: manifests, Metadata: metadata}, err
}

func readDir(fsys fs.FS, dir string, left *int64) ([]File, error) {
	entries, err := fs.ReadDir(fsys, dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, errs.New(errs.Invalid, "the directory %s cannot be read: %v", dir, err).At(dir, "R-CAT-50")
	case len(entries) > catalog.MaxBundleFiles:
		return nil, errs.New(errs.TooLarge, "the directory %s has %d files, more than %d", dir, len(entries),
			catalog.MaxBundleFiles).At(dir, "R-CAT-50")
	}
	var out []File
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		data, err := readFile(fsys, name, *left)
		if err != nil {
			return nil, err
		}
		*left -= int64(len(data))
		out = append(out, File{Name: name, Data: data})
	}
	return out, nil
}

func readFile(fsys fs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, errs.New(errs.Invalid, "the file %s cannot be read: %v", name, err).At(name, "R-CAT-50")
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, errs.New(errs.Invalid, "the file %s cannot be read: %v", name, err).At(name, "R-CAT-50")
	}
	if int64(len(data)) > limit {
		return nil, errs.New(errs.TooLarge, "with the file %s the bundle has more than %d bytes", name,
			catalog.MaxBundleBytes).At(name, "R-CAT-50")
	}
	return data, nil
}

// Check returns everything that the chosen checks find, sorted, errors first.
func Check(b Bundle, o Options) catalog.Findings {
	in := parse(b)
	out := &report{pkg: in.annotations[catalog.AnnotationPackage]}
	groups := o.Groups
	if groups == nil {
		groups = Default()
	}
	checks := map[Group]func(){
		Structure: structureCheck{in, out}.run,
		CSV:       csvCheck{in, out}.run,
		CRD:       crdCheck{in, out}.run,
		Objects:   objectsCheck{in, out}.run,
		Hub:       hubCheck{in, out}.run,
		Practice:  practiceCheck{in, out}.run,
		Other:     otherCheck{in, out, o.Platforms}.run,
	}
	for _, g := range All() {
		if slices.Contains(groups, g) {
			checks[g]()
		}
	}
	return out.findings.Report()
}
