package load

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/docs"
	"github.com/chandler-fleet/chandler/libs/catalog/validate"
	"github.com/chandler-fleet/chandler/libs/digest"
)

// BundleFile is one bundle as it was published: what a bundle image or a bundle directory holds.
type BundleFile struct {
	Package        string
	Channels       []string // that the bundle joins, as its author wrote them
	DefaultChannel string   // "" where the author names none
	// Bundle is rendered as a catalog would have it (R-CAT-58); its Content is the digest of Content.
	Bundle  catalog.Bundle
	Content Content
	CSV     bundle.CSV
	// Files are the files that were read, by path below the root.
	Files map[string][]byte
}

// ReadBundle reads one bundle, whose root holds manifests and metadata (R-CAT-50). Labels are those of the
// image that it came in; the file annotations.yaml wins over them, and either may say where the two
// directories are (R-CAT-55). Image is the bundle's pull specification, "" where it came from no image.
// Where Findings.Err is not nil there is no bundle.
func ReadBundle(fsys fs.FS, labels map[string]string, image string) (BundleFile, catalog.Findings) {
	d := &validate.BundleDraft{Place: validate.Place{File: "."}, Dir: "."}
	d.Bundle.Image = image
	one := &single{image: labels}
	r := &dirReader{
		dir: ".", draft: d, parser: new(docs.Parser), space: new(space), single: one,
		manifestsDir: dirManifests, metadataDir: dirMetadata,
	}
	if !r.locate(&r.metadataDir, catalog.AnnotationMetadata, labels, ".") || !r.open(fsys) {
		return BundleFile{}, catalog.Findings(r.findings).Report()
	}
	var content Content
	d, findings := r.decode(func(c Content) error { content = c; return nil })
	if d == nil {
		return BundleFile{}, catalog.Findings(findings).Report()
	}
	f := BundleFile{
		Package: d.Package, Channels: d.Joins, DefaultChannel: d.Preferred, Bundle: d.Bundle,
		Content: content, Files: r.files, CSV: *one.csv,
	}
	return f, catalog.Findings(append(findings, validate.CheckBundle(d)...)).Report()
}

// single is what differs where one bundle is read by itself: nil where a whole catalog is.
type single struct {
	image map[string]string // labels of the image
	csv   *bundle.CSV       // set once it is read
}

func (s *single) severity() catalog.Severity {
	if s == nil {
		return catalog.SeverityWarning
	}
	return catalog.SeverityError
}

func (s *single) verdict() string {
	if s == nil {
		return "the bundle is left out"
	}
	return "the bundle cannot be used"
}

// spoil makes errors of what keeps manifests from being a bundle.
func (s *single) spoil(findings []catalog.Finding) {
	for i := range findings {
		findings[i].Severity = s.severity()
	}
}

// found notes the CSV of the bundle.
func (s *single) found(csv *bundle.CSV) {
	if s != nil {
		s.csv = csv
	}
}

// labels returns a copy of the image's labels.
func (s *single) labels() map[string]string {
	out := map[string]string{}
	if s != nil {
		maps.Copy(out, s.image)
	}
	return out
}

// labelled reports whether labels stand in for annotations.yaml.
func (s *single) labelled() bool { return s != nil && s.image[catalog.AnnotationPackage] != "" }

// place finds the directory of manifests that annotations or labels name.
func (s *single) place(r *dirReader) bool {
	if s == nil {
		return true
	}
	before := len(r.findings)
	a := r.annotated()
	r.findings = r.findings[:before] // it is read once more, and then reported
	return r.locate(&r.manifestsDir, catalog.AnnotationManifests, a, path.Join(r.metadataDir, fileAnnotations))
}

// locate sets dir to the directory that an annotation names; file is where it stands.
func (r *dirReader) locate(dir *string, key string, annotations map[string]string, file string) bool {
	named := annotations[key]
	if named == "" {
		return true
	}
	if *dir = below(named); !fs.ValidPath(*dir) {
		return r.leaveOut(file, "R-CAT-55", fmt.Errorf("%s names %q, which is no directory of the bundle", key, named))
	}
	return true
}

// below turns a path that may begin at the image's root into one of an fs.FS.
func below(dir string) string { return path.Clean(strings.TrimLeft(dir, "/")) }

func apis(typ string, crds []bundle.CRDDescription, services []bundle.APIDescription) []catalog.Property {
	var out []catalog.Property
	for _, c := range crds {
		out = append(out, gvkProperty(typ, groupOf(c.Name), c.Version, c.Kind))
	}
	for _, a := range services {
		out = append(out, gvkProperty(typ, a.Group, a.Version, a.Kind))
	}
	return out
}

// mustJSON encodes a struct of strings, which cannot fail.
func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("a struct of strings is JSON: " + err.Error())
	}
	return raw
}

func gvkProperty(typ, group, version, kind string) catalog.Property {
	return catalog.Property{Type: typ, Value: mustJSON(catalog.GVK{Group: group, Version: version, Kind: kind})}
}

// groupOf takes the group out of a CRD name, plural.group.
func groupOf(crd string) string {
	_, group, _ := strings.Cut(crd, ".")
	return group
}

// sortProperties orders properties by type and canonical value and drops repetitions (R-CAT-58).
func sortProperties(props []catalog.Property) []catalog.Property {
	canonical := func(p catalog.Property) string {
		c, err := digest.Canonical(p.Value)
		if err != nil {
			return string(p.Value)
		}
		return string(c)
	}
	type keyed struct {
		p   catalog.Property
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
	out := make([]catalog.Property, 0, len(all))
	for _, k := range all {
		out = append(out, k.p)
	}
	return out
}

// relatedImages joins the CSV's related images, the bundle image and the images of its Deployments (R-CAT-58).
func relatedImages(csv bundle.CSV, image string) []catalog.RelatedImage {
	seen := map[string]bool{}
	var out []catalog.RelatedImage
	add := func(name, img string) {
		if img != "" && !seen[img] {
			seen[img] = true
			out = append(out, catalog.RelatedImage{Name: name, Image: img})
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
	slices.SortFunc(out, func(a, b catalog.RelatedImage) int {
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
