package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/docs"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/value"
	"github.com/chandler-fleet/chandler/libs/catalog/validate"
	"github.com/chandler-fleet/chandler/libs/digest"
)

// The fixed names of a bundle directory (R-CAT-50, R-CAT-55).
const (
	dirManifests     = "manifests"
	dirMetadata      = "metadata"
	fileAnnotations  = "annotations.yaml"
	fileDependencies = "dependencies.yaml"
	fileProperties   = "properties.yaml"
)

// bundleDir reads one directory {manifests,metadata} into a bundle. What makes no bundle is left out
// of the catalog, which a warning says: one bad bundle of many does not take the others away. pkg is the
// package of a directory of the legacy layout, which holds manifests alone.
func bundleDir(fsys fs.FS, dir, pkg string, k *worker, m memory, keep keeper) (
	*validate.BundleDraft, []catalog.Finding,
) {
	d := &validate.BundleDraft{Place: validate.Place{File: dir}, Dir: dir}
	r := &dirReader{
		dir: dir, draft: d, parser: &k.outer, space: &k.space, manifestsDir: dirManifests,
		metadataDir: dirMetadata,
	}
	if r.pkg = pkg; pkg != "" {
		r.manifestsDir = "."
	}
	if !r.open(fsys) {
		return nil, r.findings
	}
	d, findings := m.recall(r.key, d.Place, func() (*validate.BundleDraft, []catalog.Finding, bool) {
		d, findings := r.decode(keep)
		return d, findings, true
	})
	if d != nil {
		d.Packaged = pkg != ""
	}
	return d, findings
}

// dirReader holds the files of one bundle directory that have a meaning.
type dirReader struct {
	dir    string
	pkg    string // given, see bundleDir
	draft  *validate.BundleDraft
	parser *docs.Parser
	space  *space
	single *single  // set where the directory is all that was asked for
	names  []string // of manifests, sorted
	// unusual are files of the metadata directory with other names than the usual ones.
	unusual []string
	files   map[string][]byte // by path below dir
	// manifestsDir and metadataDir are where the two parts lie, below dir.
	manifestsDir, metadataDir string
	findings                  []catalog.Finding
}

// decode makes the bundle of the files.
func (r *dirReader) decode(keep keeper) (*validate.BundleDraft, []catalog.Finding) {
	if !r.annotations() {
		return nil, r.findings
	}
	manifests, ok := r.manifests()
	if !ok {
		return nil, r.findings
	}
	csv, findings := takeManifests(r.draft, manifests, keep)
	r.findings = append(r.findings, findings...)
	if csv == nil {
		r.single.spoil(r.findings)
		return nil, r.findings
	}
	if why := value.Name(csv.Name, catalog.MaxNameBytes); why != "" {
		return nil, append(r.findings, validate.ForAuthors(
			r.draft.Finding(r.single.severity(), "R-CAT-51", r.draft.Package, "%s: the name %.40q of its CSV %s",
				r.single.verdict(), csv.Name, why)))
	}
	r.single.found(csv)
	r.draft.Bundle.Name, r.draft.CSV = csv.Name, factsOf(*csv)
	if !r.render(csv) {
		return nil, r.findings
	}
	return r.draft, r.findings
}

// open reads the files: every one of the manifests directory (those that begin with a dot are nobody's
// manifest), and the three of the metadata directory.
func (r *dirReader) open(fsys fs.FS) bool {
	r.files = map[string][]byte{}
	left := int64(catalog.MaxBundleBytes)
	for _, n := range usualMetadata() {
		if !r.load(fsys, path.Join(r.metadataDir, n), true, &left) {
			return false
		}
	}
	r.others(fsys, &left)
	if annotations := path.Join(r.metadataDir, fileAnnotations); r.files[annotations] == nil && len(r.unusual) == 0 &&
		r.pkg == "" && !r.single.labelled() {
		return r.leaveOut(path.Join(r.dir, annotations), "R-CAT-51", fs.ErrNotExist)
	}
	if !r.single.place(r) {
		return false
	}
	manifests := path.Join(r.dir, r.manifestsDir)
	entries, err := fs.ReadDir(fsys, manifests)
	if err != nil {
		return r.leaveOut(manifests, "R-CAT-51", err)
	}
	if len(entries) > catalog.MaxBundleFiles {
		return r.leaveOut(manifests, "R-CAT-51", fmt.Errorf("it has more than %d files", catalog.MaxBundleFiles))
	}
	for _, e := range entries {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		n := path.Join(r.manifestsDir, e.Name())
		r.names = append(r.names, n)
		if !r.load(fsys, n, false, &left) {
			return false
		}
	}
	return true
}

// maxMetadataBytes bounds a file of the metadata directory that does not bear one of the usual names.
const maxMetadataBytes = 1 << 20

func usualMetadata() []string { return []string{fileAnnotations, fileDependencies, fileProperties} }

// unusual reports a file that may be one of the three under another name.
func unusual(e fs.DirEntry) bool {
	return !e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !slices.Contains(usualMetadata(), e.Name()) &&
		slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(e.Name()))
}

// others reads what else lies in the metadata directory, where one of the usual names is missing: OLM's tools know the
// three files apart by what they hold. What cannot be read says nothing.
func (r *dirReader) others(fsys fs.FS, left *int64) {
	if !slices.ContainsFunc(usualMetadata(),
		func(n string) bool { return r.files[path.Join(r.metadataDir, n)] == nil }) || r.pkg != "" {
		return
	}
	entries, err := fs.ReadDir(fsys, path.Join(r.dir, r.metadataDir))
	if err != nil || len(entries) > catalog.MaxBundleFiles {
		return
	}
	for _, e := range entries {
		if !unusual(e) {
			continue
		}
		n := path.Join(r.metadataDir, e.Name())
		data, err := r.space.readFile(fsys, path.Join(r.dir, n), min(*left, maxMetadataBytes))
		if err != nil {
			continue
		}
		*left -= int64(len(data))
		r.files[n] = data
		r.unusual = append(r.unusual, n)
	}
}

// load reads one file as long as all of them together stay within what is left.
func (r *dirReader) load(fsys fs.FS, name string, optional bool, left *int64) bool {
	data, err := r.space.readFile(fsys, path.Join(r.dir, name), *left)
	if optional && errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		return r.leaveOut(path.Join(r.dir, name), "R-CAT-51", err)
	}
	*left -= int64(len(data))
	r.files[name] = data
	return true
}

// key is a digest over what decode reads.
func (r *dirReader) key() digest.Digest {
	var b strings.Builder
	fmt.Fprintf(&b, "directory %q\n", r.pkg)
	for _, n := range slices.Sorted(maps.Keys(r.files)) {
		fmt.Fprintf(&b, "%q %s\n", n, digest.Bytes(r.files[n]))
	}
	return digest.Bytes([]byte(b.String()))
}

// leaveOut reports that the directory makes no bundle.
func (r *dirReader) leaveOut(file, rule string, err error) bool {
	at := validate.Place{File: file}
	r.findings = append(r.findings, validate.ForAuthors(
		at.Finding(r.single.severity(), rule, r.draft.Package, "%s: %v", r.single.verdict(), err)))
	return false
}

// annotations reads package and channels; without a package the bundle has no home (R-CAT-52, R-CAT-55).
func (r *dirReader) annotations() bool {
	file := path.Join(r.dir, r.metadataDir, fileAnnotations)
	a := r.annotated()
	r.draft.Package = a[catalog.AnnotationPackage]
	if r.draft.Package == "" {
		return r.leaveOut(file, "R-CAT-55", fmt.Errorf("set the annotation %s to its package",
			catalog.AnnotationPackage))
	}
	if t := a[catalog.AnnotationMediaType]; t != "" && t != catalog.MediaTypeRegistryV1 {
		return r.leaveOut(file, "R-CAT-55", fmt.Errorf("its media type is %q, only %s can be installed", t,
			catalog.MediaTypeRegistryV1))
	}
	for c := range strings.SplitSeq(a[catalog.AnnotationChannels], ",") {
		if c = strings.TrimSpace(c); c != "" {
			r.draft.Joins = append(r.draft.Joins, c)
		}
	}
	r.draft.Preferred = strings.TrimSpace(a[catalog.AnnotationDefaultChannel])
	for _, c := range append([]string{r.draft.Preferred}, r.draft.Joins...) {
		if why := value.Name(c, catalog.MaxNameBytes); why != "" {
			return r.leaveOut(file, "R-CAT-55", fmt.Errorf("channel %.40q %s", c, why))
		}
	}
	return true
}

// annotated returns the annotations; those of the file win over labels (R-CAT-55).
func (r *dirReader) annotated() map[string]string {
	var body struct {
		Annotations map[string]any `json:"annotations"`
	}
	r.read(fileAnnotations, &body)
	a := r.single.labels()
	if r.pkg != "" {
		a[catalog.AnnotationPackage] = r.pkg
	}
	for k, v := range body.Annotations {
		if text, ok := v.(string); ok { // others, such as a bare true, are no annotations of ours
			a[k] = text
		}
	}
	return a
}

// read decodes one file of the metadata directory as OLM's tools do; one that is not there leaves into as it is. They
// pass over a file that cannot be decoded, which a warning says: only without annotations is there no bundle.
func (r *dirReader) read(name string, into any) {
	n := path.Join(r.metadataDir, name)
	data, there := r.files[n]
	if there {
		r.decodeFile(n, data, into)
		return
	}
	key := strings.TrimSuffix(name, path.Ext(name)) // what the file holds
	for _, n := range r.unusual {
		if object, _, err := r.parser.Manifest(r.files[n], docLimits()); err == nil && has(object, key) {
			r.findings = append(r.findings, validate.ForAuthors(
				r.at(n).Finding(catalog.SeverityWarning, "R-CAT-55", r.draft.Package,
					"the file is read as %s, by what it holds; give it that name", name)))
			r.decodeFile(n, r.files[n], into)
			return
		}
	}
}

func (r *dirReader) at(name string) validate.Place {
	return validate.Place{File: path.Join(r.dir, name)}
}

// has reports whether an object in canonical form has a field.
func has(object []byte, field string) bool {
	var m map[string]json.RawMessage
	return json.Unmarshal(object, &m) == nil && len(m[field]) > 0 && string(m[field]) != "null"
}

func (r *dirReader) decodeFile(name string, data []byte, into any) {
	at := r.at(name)
	object, notes, err := r.parser.Manifest(data, docLimits())
	for _, e := range notes {
		there := validate.Place{File: at.File, Line: e.Line, Column: e.Column}
		r.findings = append(r.findings, validate.ForAuthors(
			there.Finding(catalog.SeverityWarning, "R-CAT-55", r.draft.Package, "%s", e.Text())))
	}
	if err == nil && object == nil {
		err = errors.New("the file is empty")
	}
	if err == nil {
		err = json.Unmarshal(object, into)
	}
	if err != nil {
		r.findings = append(r.findings, validate.ForAuthors(
			at.Finding(catalog.SeverityWarning, "R-CAT-55", r.draft.Package, "the file is passed over, as OLM does: %v",
				err)))
	}
}

// manifests returns the object of each manifest file as JSON, as OLM reads them: what it passes over is passed over,
// with a warning.
func (r *dirReader) manifests() ([]manifestAt, bool) {
	var out []manifestAt
	for _, n := range r.names {
		at := validate.Place{File: path.Join(r.dir, n)}
		object, notes, err := r.parser.Manifest(r.files[n], docLimits())
		for _, e := range notes {
			there := validate.Place{File: at.File, Line: e.Line, Column: e.Column}
			r.findings = append(r.findings, validate.ForAuthors(
				there.Finding(catalog.SeverityWarning, "R-CAT-51", r.draft.Package, "%s", e.Text())))
		}
		switch {
		case err != nil && isLimit(err):
			return nil, r.leaveOut(at.File, "R-CAT-51", err)
		case err != nil:
			r.findings = append(r.findings, validate.ForAuthors(
				at.Finding(catalog.SeverityWarning, "R-CAT-51", r.draft.Package,
					"the file is passed over, as OLM does: %v", err)))
		case object != nil:
			out = append(out, manifestAt{at, "the file", object})
		}
	}
	return out, true
}

// render completes the bundle from its CSV and metadata files, as an image would be rendered (R-CAT-58).
func (r *dirReader) render(csv *bundle.CSV) bool {
	d := r.draft
	d.Bundle.Version, d.Bundle.Release = csv.Spec.Version, csv.Spec.Release
	identity := mustJSON(catalog.PackageProperty{
		PackageName: d.Package, Version: csv.Spec.Version,
		Release: csv.Spec.Release,
	})
	dependencies, ok1 := r.dependencies()
	extra, ok2 := r.extraProperties(csv)
	d.Bundle.Properties = sortProperties(slices.Concat(
		[]catalog.Property{{Type: catalog.TypePackage, Value: identity}},
		apis(catalog.TypeGVK, csv.Spec.CRDs.Owned, csv.Spec.APIServices.Owned),
		apis(catalog.TypeGVKRequired, csv.Spec.CRDs.Required, csv.Spec.APIServices.Required),
		dependencies, extra))
	d.Bundle.RelatedImages = relatedImages(*csv, d.Bundle.Image)
	return ok1 && ok2
}

// dependencies maps metadata/dependencies.yaml to properties (R-CAT-56).
func (r *dirReader) dependencies() ([]catalog.Property, bool) {
	var body struct {
		Dependencies []catalog.Property `json:"dependencies"`
	}
	r.read(fileDependencies, &body)
	var out []catalog.Property
	for _, dep := range body.Dependencies {
		switch dep.Type {
		case catalog.TypePackage:
			var v struct {
				PackageName string `json:"packageName"`
				Version     string `json:"version"`
			}
			if err := json.Unmarshal(dep.Value, &v); err != nil {
				return nil, r.leaveOut(path.Join(r.dir, r.metadataDir, fileDependencies), "R-CAT-56", err)
			}
			out = append(out, catalog.Property{
				Type: catalog.TypePackageRequired, Value: mustJSON(
					catalog.PackageRequired{PackageName: v.PackageName, VersionRange: v.Version}),
			})
		case catalog.TypeGVK:
			out = append(out, catalog.Property{Type: catalog.TypeGVKRequired, Value: dep.Value})
		default:
			out = append(out, dep)
		}
	}
	return out, true
}

// extraProperties reads metadata/properties.yaml and the CSV annotation olm.properties (R-CAT-57, R-CAT-58).
func (r *dirReader) extraProperties(csv *bundle.CSV) ([]catalog.Property, bool) {
	var body struct {
		Properties []catalog.Property `json:"properties"`
	}
	r.read(fileProperties, &body)
	out := body.Properties
	if text := csv.Annotations["olm.properties"]; text != "" {
		var more []catalog.Property
		if err := json.Unmarshal([]byte(text), &more); err != nil {
			return nil, r.leaveOut(path.Join(r.dir, r.manifestsDir), "R-CAT-58",
				fmt.Errorf("the CSV annotation olm.properties: %w", err))
		}
		out = append(out, more...)
	}
	return out, true
}

// readFile reads a file of at most limit bytes.
func readFile(fsys fs.FS, name string, limit int64) ([]byte, error) {
	return new(space).readFile(fsys, name, limit)
}

// space is memory for the files of one bundle after the other.
type space struct{ free []byte }

// maxSpace is up to which size memory is used again; few bundles are larger.
const maxSpace = 8 << 20

// reset gives all that was read back.
func (s *space) reset() {
	if s.free = s.free[:0]; cap(s.free) > maxSpace {
		s.free = nil
	}
}

// readFile reads a file of at most limit bytes, also one that grows meanwhile.
func (s *space) readFile(fsys fs.FS, name string, limit int64) (data []byte, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := max(st.Size(), 0) + 1 // one more, so that the end is seen at once
	if size > limit+1 {
		return nil, fmt.Errorf("%s has %d bytes, beyond the limit of %d", name, size-1, limit)
	}
	data = s.take(int(size))
	n, err := io.ReadFull(f, data)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return data[:n:n], nil
	case err != nil:
		return nil, err
	}
	rest, err := io.ReadAll(io.LimitReader(f, limit+1-size)) // it has grown since
	if err == nil && size+int64(len(rest)) > limit {
		err = fmt.Errorf("%s is beyond the limit of %d bytes", name, limit)
	}
	return append(data[:size:size], rest...), err
}

// take returns n bytes that nobody else has until reset.
func (s *space) take(n int) []byte {
	if cap(s.free)-len(s.free) < n {
		s.free = make([]byte, 0, max(n, 2*cap(s.free)))
	}
	from := len(s.free)
	s.free = s.free[:from+n]
	return s.free[from : from+n : from+n]
}
