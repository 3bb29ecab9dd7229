package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/docs"
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
func bundleDir(fsys fs.FS, dir string, keep keeper) (*bundleDraft, []Finding) {
	d := &bundleDraft{place: place{file: dir}, dir: dir}
	r := &dirReader{fs: fsys, dir: dir, draft: d}
	if !r.annotations() {
		return nil, r.findings
	}
	manifests, ok := r.manifests()
	if !ok {
		return nil, r.findings
	}
	csv, findings := d.take(manifests, keep)
	r.findings = append(r.findings, findings...)
	if csv == nil {
		return nil, r.findings
	}
	d.bundle.Name, d.csv = csv.Name, factsOf(*csv)
	r.render(csv)
	return d, r.findings
}

type dirReader struct {
	fs       fs.FS
	dir      string
	draft    *bundleDraft
	findings []Finding
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
	if !r.read(file, &body) {
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

// read decodes one YAML or JSON file of the metadata directory.
func (r *dirReader) read(file string, into any) bool {
	data, err := readFile(r.fs, file, MaxDocumentBytes)
	if err != nil {
		r.warnf(file, "R-CAT-55", "the bundle is left out: %v", err)
		return false
	}
	all, err := docs.Objects(data, docLimits())
	switch {
	case err != nil:
	case len(all) == 0:
		err = errors.New("the file is empty")
	default:
		err = json.Unmarshal(all[0], into)
	}
	if err != nil {
		r.warnf(file, "R-CAT-55", "the bundle is left out: %v", err)
		return false
	}
	return true
}

// manifests reads every file of the manifests directory; files that begin with a dot are nobody's manifest.
func (r *dirReader) manifests() ([][]byte, bool) {
	dir := path.Join(r.dir, dirManifests)
	entries, err := fs.ReadDir(r.fs, dir)
	if err != nil {
		r.warnf(dir, "R-CAT-51", "the bundle is left out: %v", err)
		return nil, false
	}
	if len(entries) > MaxBundleFiles {
		r.warnf(dir, "R-CAT-51", "the bundle is left out: it has more than %d files", MaxBundleFiles)
		return nil, false
	}
	var out [][]byte
	left := int64(MaxBundleBytes)
	for _, e := range entries {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		file := path.Join(dir, e.Name())
		data, err := readFile(r.fs, file, left)
		if err != nil {
			r.warnf(file, "R-CAT-51", "the bundle is left out: %v", err)
			return nil, false
		}
		left -= int64(len(data))
		objects, err := docs.Objects(data, docLimits())
		if err != nil {
			r.warnf(file, "R-CAT-51", "the bundle is left out: %v", err)
			return nil, false
		}
		out = append(out, objects...)
	}
	return out, true
}

// render completes the bundle from its CSV and metadata files, as an image would be rendered (R-CAT-58).
func (r *dirReader) render(csv *bundle.CSV) {
	d := r.draft
	d.bundle.Version, d.bundle.Release = csv.Spec.Version, csv.Spec.Release
	props := []Property{{Type: TypePackage, Value: mustJSON(PackageProperty{d.pkg, csv.Spec.Version, csv.Spec.Release})}}
	for _, c := range csv.Spec.CRDs.Owned {
		props = append(props, gvkProperty(TypeGVK, groupOf(c.Name), c.Version, c.Kind))
	}
	for _, a := range csv.Spec.APIServices.Owned {
		props = append(props, gvkProperty(TypeGVK, a.Group, a.Version, a.Kind))
	}
	for _, c := range csv.Spec.CRDs.Required {
		props = append(props, gvkProperty(TypeGVKRequired, groupOf(c.Name), c.Version, c.Kind))
	}
	for _, a := range csv.Spec.APIServices.Required {
		props = append(props, gvkProperty(TypeGVKRequired, a.Group, a.Version, a.Kind))
	}
	props = append(props, r.dependencies()...)
	props = append(props, r.extraProperties(csv)...)
	d.bundle.Properties = sortProperties(props)
	d.bundle.RelatedImages = relatedImages(*csv, d.bundle.Image)
}

// dependencies maps metadata/dependencies.yaml to properties (R-CAT-56).
func (r *dirReader) dependencies() []Property {
	file := path.Join(r.dir, dirMetadata, fileDependencies)
	var body struct {
		Dependencies []Property `json:"dependencies"`
	}
	if !r.optional(file, &body) {
		return nil
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
				r.warnf(file, "R-CAT-56", "dependency %s is passed over: %v", dep.Type, err)
				continue
			}
			out = append(out, Property{TypePackageRequired, mustJSON(PackageRequired{v.PackageName, v.Version})})
		case TypeGVK:
			out = append(out, Property{TypeGVKRequired, dep.Value})
		default:
			out = append(out, dep)
		}
	}
	return out
}

// extraProperties reads metadata/properties.yaml and the CSV annotation olm.properties (R-CAT-57, R-CAT-58).
func (r *dirReader) extraProperties(csv *bundle.CSV) []Property {
	var body struct {
		Properties []Property `json:"properties"`
	}
	file := path.Join(r.dir, dirMetadata, fileProperties)
	r.optional(file, &body)
	out := body.Properties
	if text := csv.Annotations["olm.properties"]; text != "" {
		var more []Property
		if err := json.Unmarshal([]byte(text), &more); err != nil {
			r.warnf(path.Join(r.dir, dirManifests), "R-CAT-58", "the CSV annotation olm.properties is passed over: %v", err)
		}
		out = append(out, more...)
	}
	return out
}

func (r *dirReader) optional(file string, into any) bool {
	if _, err := fs.Stat(r.fs, file); err != nil {
		return false
	}
	return r.read(file, into)
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
