package load

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/docs"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/layout"
	"github.com/chandler-fleet/chandler/libs/catalog/validate"
)

// source is one unit of work of a load: a file of documents, or a bundle directory.
type source struct {
	path   string
	bundle bool
	// beside says that the file stands beside bundle directories, where files that are no catalog
	// content (Makefile, ci.yaml) are usual.
	beside bool
	// pkg is the package of a bundle directory of the legacy layout, which names none itself.
	pkg  string
	size int64
}

// walker finds what a tree holds. Everything is a catalog file (R-CAT-1) except:
//   - what an .indexignore excludes (R-CAT-2);
//   - a bundle directory, which is {manifests, metadata/annotations.yaml}: it is read as one bundle;
//   - directories beside bundle directories, which hold build recipes and templates in practice, and
//     ci.yaml, which says how their update graph is made;
//   - a package manifest and the directories beside it, which are bundles of the legacy layout;
//   - names that begin with "..", which are a kubelet's own inside a mounted volume.
type walker struct {
	fs       fs.FS
	sources  []source
	findings []catalog.Finding
	notes    notes
	seen     int // files and directories met so far
}

func (w *walker) reportf(s catalog.Severity, file, rule, format string, args ...any) {
	at := validate.Place{File: file}
	w.findings = append(w.findings, at.Finding(s, rule, "", format, args...))
}

// unread is reportf for an error that leaves a directory, or with scopeAll all that was to follow, unread.
func (w *walker) unread(scope, file, rule, format string, args ...any) {
	w.reportf(catalog.SeverityError, file, rule, format, args...)
	w.findings[len(w.findings)-1].Scope = scope
}

// walk reads a directory and descends. It returns false where a limit ends the whole walk.
func (w *walker) walk(dir string, ig ignores, depth int) bool {
	if depth > catalog.MaxDirectoryDepth {
		w.unread(validate.ScopeAll, dir, "R-CAT-1",
			"directories nest more than %d deep; flatten the tree or exclude it in %s", catalog.MaxDirectoryDepth,
			ignoreFile)
		return false
	}
	entries, err := fs.ReadDir(w.fs, dir)
	if err != nil {
		w.unread(dir, dir, "R-CAT-1", "the directory cannot be read: %v", err)
		return true
	}
	ig, err = ig.with(w.fs, dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.unread(dir, path.Join(dir, ignoreFile), "R-CAT-2", "the ignore file cannot be read: %v", err)
		return true
	}
	var files, dirs, bundles []fs.DirEntry
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		w.seen++
		if w.seen > catalog.MaxFiles {
			w.unread(validate.ScopeAll, name, "R-CAT-1",
				"the catalog has more than %d files and directories; give a directory that holds the catalog alone",
				catalog.MaxFiles)
			return false
		}
		switch {
		case e.Name() == ignoreFile || strings.HasPrefix(e.Name(), ".."):
		case e.IsDir() && w.isBundle(name):
			if !ig.excluded(path.Join(name, dirMetadata, fileAnnotations)) {
				bundles = append(bundles, e)
			}
		case e.IsDir():
			dirs = append(dirs, e)
		case !ig.excluded(name):
			files = append(files, e)
		}
	}
	return w.add(dir, files, dirs, bundles, ig, depth)
}

func (w *walker) add(dir string, files, dirs, bundles []fs.DirEntry, ig ignores, depth int) bool {
	if len(bundles) == 0 && w.legacy(dir, files, dirs, ig) {
		return true
	}
	for _, e := range files {
		if len(bundles) == 0 || !w.graphMode(dir, e.Name()) {
			w.file(path.Join(dir, e.Name()), len(bundles) > 0)
		}
	}
	for _, e := range bundles {
		w.sources = append(w.sources, source{path: path.Join(dir, e.Name()), bundle: true})
	}
	for _, e := range dirs {
		name := path.Join(dir, e.Name())
		if len(bundles) > 0 {
			w.reportf(catalog.SeverityInfo, name, "R-CAT-4",
				"the directory is passed over: it stands beside bundle directories and is none itself")
			continue
		}
		if !w.walk(name, ig, depth+1) {
			return false
		}
	}
	return true
}

// graphMode takes the ci.yaml of bundle directories (R-CAT-75). It returns false for any other file.
func (w *walker) graphMode(dir, name string) bool {
	if name != layout.FileCI {
		return false
	}
	at := validate.Place{File: path.Join(dir, name)}
	data, err := readFile(w.fs, at.File, layout.MaxBytes)
	mode := layout.Replaces
	if err == nil {
		var derr *docs.Error
		if mode, derr = layout.ReadMode(data, docLimits()); derr != nil {
			at.Line, at.Column, err = derr.Line, derr.Column, errors.New(derr.Message)
		}
	}
	if err != nil {
		w.findings = append(w.findings, at.Finding(catalog.SeverityWarning, "R-CAT-75", "",
			"the file is left out, and edges come from the CSVs: %v", err))
	}
	if w.notes.modes == nil {
		w.notes.modes = map[string]layout.Mode{}
	}
	w.notes.modes[dir] = mode
	return true
}

// legacy takes a directory of the package-manifest layout: {*.package.yaml, <version>/ of manifests}.
// It returns false for any other (R-CAT-76).
func (w *walker) legacy(dir string, files, dirs []fs.DirEntry, ig ignores) bool {
	manifest := ""
	for _, e := range files {
		name := path.Join(dir, e.Name())
		if len(dirs) == 0 || manifest != "" || !layout.Named(e.Name()) {
			continue
		}
		data, err := readFile(w.fs, name, layout.MaxBytes)
		if err != nil {
			continue // it is read as any other file is, which reports what is wrong
		}
		if p := layout.ReadPackage(data, docLimits()); p != nil {
			manifest = name
			if w.notes.manifests == nil {
				w.notes.manifests = map[string]manifestDraft{}
			}
			w.notes.manifests[dir] = manifestDraft{validate.Place{File: name, Line: p.Line, Column: p.Column}, *p}
		}
	}
	if manifest == "" {
		return false
	}
	w.reportf(catalog.SeverityInfo, manifest, "R-CAT-76",
		"the package-manifest format is read and converted; it is no longer in use: write bundle directories or a "+
			"file-based catalog")
	for _, e := range files {
		if name := path.Join(dir, e.Name()); name != manifest {
			w.file(name, true)
		}
	}
	for _, e := range dirs {
		name := path.Join(dir, e.Name())
		if !strings.HasPrefix(e.Name(), ".") && !ig.excluded(path.Join(name, manifestOf)) {
			w.sources = append(w.sources, source{path: name, bundle: true, pkg: w.notes.manifests[dir].Name})
		}
	}
	return true
}

// manifestOf stands for any manifest of a legacy bundle directory where an ignore file is asked.
const manifestOf = "clusterserviceversion.yaml"

// isBundle reports whether a directory has the two parts of a bundle.
func (w *walker) isBundle(dir string) bool {
	st, err := fs.Stat(w.fs, path.Join(dir, dirManifests))
	if err != nil || !st.IsDir() {
		return false
	}
	st, err = fs.Stat(w.fs, path.Join(dir, dirMetadata, fileAnnotations))
	return err == nil && !st.IsDir() || err != nil && w.annotatedElsewhere(path.Join(dir, dirMetadata))
}

// annotatedElsewhere reports a directory of metadata whose annotations stand in a file of another name.
func (w *walker) annotatedElsewhere(dir string) bool {
	entries, err := fs.ReadDir(w.fs, dir)
	if err != nil || len(entries) > catalog.MaxBundleFiles {
		return false
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		if !unusual(e) {
			return false
		}
		data, err := readFile(w.fs, path.Join(dir, e.Name()), maxMetadataBytes)
		return err == nil && bytes.Contains(data, []byte(catalog.AnnotationPackage))
	})
}

// file adds a regular file. A link to a file inside the root counts as that file; a link to a
// directory is not followed (it could lead in circles), one that leaves the root is an error.
func (w *walker) file(name string, beside bool) {
	info, err := fs.Stat(w.fs, name)
	switch {
	case err != nil:
		w.reportf(catalog.SeverityError, name, "R-CAT-1",
			"the file cannot be read, or is a link that leaves the catalog: %v", err)
	case info.IsDir():
		w.reportf(catalog.SeverityInfo, name, "R-CAT-1", "a link to a directory is not followed")
	case !info.Mode().IsRegular():
		w.reportf(catalog.SeverityError, name, "R-CAT-1", "not a regular file; exclude it in %s", ignoreFile)
	case info.Size() > catalog.MaxFileBytes:
		w.reportf(catalog.SeverityError, name, "R-CAT-1", "the file has %d bytes, more than %d; split it", info.Size(),
			int64(catalog.MaxFileBytes))
	default:
		w.sources = append(w.sources, source{path: name, beside: beside, size: info.Size()})
	}
}

// ignoreFile is the name of a file of gitignore patterns. It holds for its directory and below, and
// is never catalog content itself (R-CAT-2).
const ignoreFile = ".indexignore"

// ignores are the patterns that hold in one directory: those of its parents first, so that the
// nearest file has the last word, as git has it.
type ignores []gitignore.Pattern

// with adds the patterns of dir's own ignore file, if it has one.
func (ig ignores) with(fsys fs.FS, dir string) (ignores, error) {
	data, err := readFile(fsys, path.Join(dir, ignoreFile), catalog.MaxIgnoreBytes)
	if err != nil {
		return ig, err
	}
	out := append(ignores(nil), ig...)
	domain := split(dir)
	s := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))))
	s.Buffer(nil, catalog.MaxIgnoreBytes+1)
	for s.Scan() {
		line := s.Text()
		if line == "" || strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		out = append(out, gitignore.ParsePattern(line, domain))
	}
	return out, s.Err()
}

// excluded reports whether the last pattern that speaks of a file excludes it. Files are asked for,
// never directories: a later "!*.yaml" takes a file back out of a directory that "**/*" excluded, as
// existing catalogs expect (a pattern such as "src/" still excludes all that lies below).
func (ig ignores) excluded(name string) bool {
	return gitignore.NewMatcher(ig).Match(split(name), false)
}

func split(dir string) []string {
	if dir == "." || dir == "" {
		return nil
	}
	return strings.Split(dir, "/")
}

// passOver turns what is wrong with files beside bundle directories into a note, where nothing in the
// file is catalog content: such places hold build recipes.
func (w *walker) passOver(parts []part) []part {
	content := map[int]bool{}
	for _, p := range parts {
		content[p.source] = content[p.source] || !p.envelope && !p.empty()
	}
	noted := map[int]bool{}
	out := parts[:0]
	for _, p := range parts {
		if !p.envelope || content[p.source] || !w.sources[p.source].beside {
			out = append(out, p)
			continue
		}
		if !noted[p.source] {
			noted[p.source] = true
			w.reportf(catalog.SeverityInfo, w.sources[p.source].path, "R-CAT-4",
				"the file is passed over: it stands beside bundle directories and is no catalog content")
		}
	}
	return out
}

func (p part) empty() bool {
	return len(p.packages)+len(p.channels)+len(p.bundles)+len(p.deprecations)+len(p.others) == 0
}
