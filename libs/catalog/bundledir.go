package catalog

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/docs"
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

// Annotation keys of metadata/annotations.yaml (R-CAT-55).
const (
	annotationPrefix         = "operators.operatorframework.io.bundle."
	AnnotationMediaType      = annotationPrefix + "mediatype.v1"
	AnnotationPackage        = annotationPrefix + "package.v1"
	AnnotationChannels       = annotationPrefix + "channels.v1"
	AnnotationDefaultChannel = annotationPrefix + "channel.default.v1"
	// MediaTypeRegistryV1 is the only media type whose bundles can be installed.
	MediaTypeRegistryV1 = "registry+v1"
)

// bundleDir reads one directory {manifests,metadata} into a bundle. What makes no bundle is left out
// of the catalog, which a warning says: one bad bundle of many does not take the others away.
func bundleDir(fsys fs.FS, dir string, m memory, keep keeper) (*bundleDraft, []Finding) {
	d := &bundleDraft{place: place{file: dir}, dir: dir}
	r := &dirReader{dir: dir, draft: d}
	if !r.open(fsys) {
		return nil, r.findings
	}
	return m.recall(r.key(), d.place, func() (*bundleDraft, []Finding, bool) {
		d, findings := r.decode(keep)
		return d, findings, true
	})
}

// dirReader holds the files of one bundle directory that have a meaning.
type dirReader struct {
	dir      string
	draft    *bundleDraft
	names    []string // of manifests, sorted
	files    map[string][]byte
	findings []Finding
}

// decode makes the bundle of the files.
func (r *dirReader) decode(keep keeper) (*bundleDraft, []Finding) {
	if !r.annotations() {
		return nil, r.findings
	}
	manifests, ok := r.manifests()
	if !ok {
		return nil, r.findings
	}
	csv, findings := r.draft.take(manifests, keep)
	r.findings = append(r.findings, findings...)
	if csv == nil {
		return nil, r.findings
	}
	r.draft.bundle.Name, r.draft.csv = csv.Name, factsOf(*csv)
	if !r.render(csv) {
		return nil, r.findings
	}
	return r.draft, r.findings
}

// open reads the files: every one of the manifests directory (those that begin with a dot are nobody's
// manifest), and the three of the metadata directory.
func (r *dirReader) open(fsys fs.FS) bool {
	r.files = map[string][]byte{}
	manifests := path.Join(r.dir, dirManifests)
	entries, err := fs.ReadDir(fsys, manifests)
	if err != nil {
		return r.leaveOut(manifests, "R-CAT-51", err)
	}
	if len(entries) > MaxBundleFiles {
		return r.leaveOut(manifests, "R-CAT-51", fmt.Errorf("it has more than %d files", MaxBundleFiles))
	}
	for _, e := range entries {
		if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			r.names = append(r.names, path.Join(dirManifests, e.Name()))
		}
	}
	all := slices.Clone(r.names)
	for _, n := range []string{fileAnnotations, fileDependencies, fileProperties} {
		all = append(all, path.Join(dirMetadata, n))
	}
	left := int64(MaxBundleBytes)
	for i, n := range all {
		data, err := readFile(fsys, path.Join(r.dir, n), left)
		if errors.Is(err, fs.ErrNotExist) && i > len(r.names) { // dependencies and properties are optional
			continue
		}
		if err != nil {
			return r.leaveOut(path.Join(r.dir, n), "R-CAT-51", err)
		}
		left -= int64(len(data))
		r.files[n] = data
	}
	return true
}

// key is a digest over what decode reads.
func (r *dirReader) key() digest.Digest {
	var b strings.Builder
	b.WriteString("directory\n")
	for _, n := range sortedKeys(r.files) {
		fmt.Fprintf(&b, "%q %s\n", n, digest.Bytes(r.files[n]))
	}
	return digest.Bytes([]byte(b.String()))
}

// leaveOut tells that the directory makes no bundle.
func (r *dirReader) leaveOut(file, rule string, err error) bool {
	r.warnf(file, rule, "the bundle is left out: %v", err)
	return false
}

func (r *dirReader) warnf(file, rule, format string, args ...any) {
	at := place{file: file}
	r.findings = append(r.findings, at.finding(SeverityWarning, rule, r.draft.pkg, format, args...))
}

// annotations reads package and channels; without a package the bundle has no home (R-CAT-52, R-CAT-55).
func (r *dirReader) annotations() bool {
	file := path.Join(r.dir, dirMetadata, fileAnnotations)
	var body struct {
		Annotations map[string]any `json:"annotations"`
	}
	if !r.read(fileAnnotations, &body) {
		return false
	}
	a := map[string]string{}
	for k, v := range body.Annotations {
		if text, ok := v.(string); ok { // others, such as a bare true, are no annotations of ours
			a[k] = text
		}
	}
	r.draft.pkg = a[AnnotationPackage]
	if r.draft.pkg == "" {
		r.warnf(file, "R-CAT-55", "the bundle is left out: set the annotation %s to its package", AnnotationPackage)
		return false
	}
	if t := a[AnnotationMediaType]; t != "" && t != MediaTypeRegistryV1 {
		r.warnf(file, "R-CAT-55", "the bundle is left out: its media type is %q, only %s can be installed", t, MediaTypeRegistryV1)
		return false
	}
	for c := range strings.SplitSeq(a[AnnotationChannels], ",") {
		if c = strings.TrimSpace(c); c != "" {
			r.draft.joins = append(r.draft.joins, c)
		}
	}
	r.draft.preferred = strings.TrimSpace(a[AnnotationDefaultChannel])
	return true
}

// read decodes one file of the metadata directory; one that is not there leaves into as it is.
func (r *dirReader) read(name string, into any) bool {
	data, there := r.files[path.Join(dirMetadata, name)]
	if !there {
		return true
	}
	all, err := docs.Objects(data, docLimits())
	if err == nil && len(all) == 0 {
		err = errors.New("the file is empty")
	}
	if err == nil {
		err = json.Unmarshal(all[0], into)
	}
	if err != nil {
		return r.leaveOut(path.Join(r.dir, dirMetadata, name), "R-CAT-55", err)
	}
	return true
}

// manifests returns the objects of all manifest files as JSON.
func (r *dirReader) manifests() ([][]byte, bool) {
	var out [][]byte
	for _, n := range r.names {
		objects, err := docs.Objects(r.files[n], docLimits())
		if err != nil {
			return nil, r.leaveOut(path.Join(r.dir, n), "R-CAT-51", err)
		}
		out = append(out, objects...)
	}
	return out, true
}

// render completes the bundle from its CSV and metadata files, as an image would be rendered (R-CAT-58).
func (r *dirReader) render(csv *bundle.CSV) bool {
	d := r.draft
	d.bundle.Version, d.bundle.Release = csv.Spec.Version, csv.Spec.Release
	dependencies, ok1 := r.dependencies()
	extra, ok2 := r.extraProperties(csv)
	d.bundle.Properties = sortProperties(slices.Concat(
		[]Property{{Type: TypePackage, Value: mustJSON(PackageProperty{d.pkg, csv.Spec.Version, csv.Spec.Release})}},
		apis(TypeGVK, csv.Spec.CRDs.Owned, csv.Spec.APIServices.Owned),
		apis(TypeGVKRequired, csv.Spec.CRDs.Required, csv.Spec.APIServices.Required),
		dependencies, extra))
	d.bundle.RelatedImages = relatedImages(*csv, d.bundle.Image)
	return ok1 && ok2
}

func apis(typ string, crds []bundle.CRDDescription, services []bundle.APIDescription) []Property {
	var out []Property
	for _, c := range crds {
		out = append(out, gvkProperty(typ, groupOf(c.Name), c.Version, c.Kind))
	}
	for _, a := range services {
		out = append(out, gvkProperty(typ, a.Group, a.Version, a.Kind))
	}
	return out
}

// dependencies maps metadata/dependencies.yaml to properties (R-CAT-56).
func (r *dirReader) dependencies() ([]Property, bool) {
	var body struct {
		Dependencies []Property `json:"dependencies"`
	}
	if !r.read(fileDependencies, &body) {
		return nil, false
	}
	var out []Property
	for _, dep := range body.Dependencies {
		switch dep.Type {
		case TypePackage:
			var v struct {
				PackageName string `json:"packageName"`
				Version     string `json:"version"`
			}
			if err := json.Unmarshal(dep.Value, &v); err != nil {
				return nil, r.leaveOut(path.Join(r.dir, dirMetadata, fileDependencies), "R-CAT-56", err)
			}
			out = append(out, Property{TypePackageRequired, mustJSON(PackageRequired{v.PackageName, v.Version})})
		case TypeGVK:
			out = append(out, Property{TypeGVKRequired, dep.Value})
		default:
			out = append(out, dep)
		}
	}
	return out, true
}

// extraProperties reads metadata/properties.yaml and the CSV annotation olm.properties (R-CAT-57, R-CAT-58).
func (r *dirReader) extraProperties(csv *bundle.CSV) ([]Property, bool) {
	var body struct {
		Properties []Property `json:"properties"`
	}
	if !r.read(fileProperties, &body) {
		return nil, false
	}
	out := body.Properties
	if text := csv.Annotations["olm.properties"]; text != "" {
		var more []Property
		if err := json.Unmarshal([]byte(text), &more); err != nil {
			return nil, r.leaveOut(path.Join(r.dir, dirManifests), "R-CAT-58", fmt.Errorf("the CSV annotation olm.properties: %w", err))
		}
		out = append(out, more...)
	}
	return out, true
}

// readFile reads a file of at most limit bytes.
func readFile(fsys fs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s is beyond the limit of %d bytes", name, limit)
	}
	return data, err
}

// mustJSON encodes a struct of strings, which cannot fail.
func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("a struct of strings is JSON: " + err.Error())
	}
	return raw
}

func gvkProperty(typ, group, version, kind string) Property {
	return Property{Type: typ, Value: mustJSON(GVK{group, version, kind})}
}

// groupOf takes the group out of a CRD name, plural.group.
func groupOf(crd string) string {
	_, group, _ := strings.Cut(crd, ".")
	return group
}

// sortProperties orders properties by type and canonical value and drops repetitions (R-CAT-58).
func sortProperties(props []Property) []Property {
	canonical := func(p Property) string {
		c, err := digest.Canonical(p.Value)
		if err != nil {
			return string(p.Value)
		}
		return string(c)
	}
	type keyed struct {
		p   Property
		key string
	}
	all := make([]keyed, 0, len(props))
	for _, p := range props {
		all = append(all, keyed{p, canonical(p)})
	}
	slices.SortStableFunc(all, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.p.Type, b.p.Type), cmp.Compare(a.key, b.key))
	})
	all = slices.CompactFunc(all, func(a, b keyed) bool { return a.p.Type == b.p.Type && a.key == b.key })
	out := make([]Property, 0, len(all))
	for _, k := range all {
		out = append(out, k.p)
	}
	return out
}

// relatedImages joins the CSV's related images, the bundle image and the images of its Deployments (R-CAT-58).
func relatedImages(csv bundle.CSV, image string) []RelatedImage {
	seen := map[string]bool{}
	var out []RelatedImage
	add := func(name, img string) {
		if img != "" && !seen[img] {
			seen[img] = true
			out = append(out, RelatedImage{Name: name, Image: img})
		}
	}
	for _, r := range csv.Spec.RelatedImages {
		add(r.Name, r.Image)
	}
	add("", image)
	for _, d := range csv.Spec.Install.Spec.Deployments {
		for _, img := range containerImages(d.Spec) {
			add("", img)
		}
	}
	slices.SortFunc(out, func(a, b RelatedImage) int {
		return cmp.Or(cmp.Compare(a.Image, b.Image), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// containerImages returns the images of a Deployment's containers, none where its form is odd.
func containerImages(deployment json.RawMessage) []string {
	type container struct {
		Image string `json:"image"`
	}
	var s struct {
		Template struct {
			Spec struct {
				Containers     []container `json:"containers"`
				InitContainers []container `json:"initContainers"`
			} `json:"spec"`
		} `json:"template"`
	}
	if json.Unmarshal(deployment, &s) != nil {
		return nil
	}
	var out []string
	for _, c := range slices.Concat(s.Template.Spec.InitContainers, s.Template.Spec.Containers) {
		out = append(out, c.Image)
	}
	return out
}
