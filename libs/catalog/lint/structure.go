package lint

import (
	"compress/gzip"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
)

const (
	// maxPacked is what the manifests may have when packed: OLM unpacks bundles through a ConfigMap, and
	// etcd takes objects of 1 MiB.
	maxPacked = 1 << 20
	// fullPercent is from which part of it on a warning is due.
	fullPercent = 85
)

// kindPodMonitor is accepted by bundle tooling and refused at installation (R-CAT-53).
const kindPodMonitor = "PodMonitor"

// optionalKinds are the kinds beside CSV and CRD that a bundle may bring (R-CAT-53).
func optionalKinds() []string {
	return []string{
		"ClusterRole", "ClusterRoleBinding", "ConfigMap", "ConsoleCLIDownload", "ConsoleLink", "ConsolePlugin",
		"ConsoleQuickStart", "ConsoleYAMLSample", "NetworkPolicy", "PodDisruptionBudget", kindPodMonitor,
		"PriorityClass", "PrometheusRule", "Role", "RoleBinding", "Secret", "Service", "ServiceAccount",
		"ServiceMonitor", "VerticalPodAutoscaler",
	}
}

// structureCheck holds how a bundle is built: directories, annotations, kinds of objects, size, owned CRDs.
type structureCheck struct {
	in  *parsed
	out *report
}

func (l structureCheck) run() {
	l.directories()
	l.unreadable()
	l.requiredAnnotations()
	l.kinds()
	l.size()
	l.oneCSV()
	l.ownedCRDs()
	l.duplicateCRDs()
}

func (l structureCheck) directories() {
	if len(l.in.files.Manifests) == 0 {
		l.out.errorf("structure-directory", place{file: dirManifests},
			"the bundle has no directory %s with files; put its ClusterServiceVersion and CRDs there", dirManifests)
	}
	if len(l.in.files.Metadata) == 0 {
		l.out.errorf("structure-directory", place{file: dirMetadata},
			"the bundle has no directory %s with files; put annotations.yaml there", dirMetadata)
	}
}

func (l structureCheck) unreadable() {
	for _, b := range l.in.broken {
		l.out.errorf("structure-file", place{b.File, b.Line, b.Column}, "the file cannot be used: %s", b.Message)
	}
}

// requiredAnnotations holds the annotations that make a directory a bundle (R-CAT-55).
func (l structureCheck) requiredAnnotations() {
	if !slices.ContainsFunc(l.in.files.Metadata, func(f File) bool { return f.Name == fileAnnotations }) {
		l.out.errorf("structure-annotations", place{file: fileAnnotations},
			"the file is missing; it names package and channels of the bundle")
		return
	}
	at := place{file: fileAnnotations}
	if l.in.annotated.Exists() {
		at.line, at.column = l.in.annotated.Line(), l.in.annotated.Column()
	}
	for _, want := range []struct {
		key  string
		good func(string) bool
		form string
	}{
		{
			catalog.AnnotationMediaType, func(v string) bool { return v == catalog.MediaTypeRegistryV1 },
			catalog.MediaTypeRegistryV1,
		},
		{catalog.AnnotationManifests, func(v string) bool { return path.Clean(v) == dirManifests }, dirManifests + "/"},
		{catalog.AnnotationMetadata, func(v string) bool { return path.Clean(v) == dirMetadata }, dirMetadata + "/"},
		{catalog.AnnotationPackage, func(v string) bool { return v != "" }, "the name of the package"},
		{
			catalog.AnnotationChannels, func(v string) bool { return strings.Trim(v, ", ") != "" },
			"the channels that the bundle joins, with commas between",
		},
	} {
		v, there := l.in.annotations[want.key]
		switch {
		case !there:
			l.out.errorf("structure-annotations", at, "the annotation %s is missing; set it to %s", want.key, want.form)
		case !want.good(v):
			value := l.in.annotated.Child(want.key)
			l.out.errorf("structure-annotations", place{fileAnnotations, value.Line(), value.Column()},
				"the annotation %s is %q; set it to %s", want.key, v, want.form)
		}
	}
}

func (l structureCheck) kinds() {
	for _, o := range l.in.objects {
		switch {
		case o.kind == bundle.KindCSV || o.kind == bundle.KindCRD:
		case o.kind == kindPodMonitor:
			l.out.warnf("structure-kind", o.at("kind"), "%s %s is refused at installation; use a ServiceMonitor", o.kind,
				o.name)
		case !slices.Contains(optionalKinds(), o.kind):
			l.out.errorf("structure-kind", o.at("kind"),
				"%s %s is of a kind that a bundle may not bring; let the operator create it", o.kind, o.name)
		}
	}
}

// size packs the manifests as an installation would.
func (l structureCheck) size() {
	var n counter
	z := gzip.NewWriter(&n)
	for _, f := range l.in.files.Manifests {
		if _, err := z.Write(f.Data); err != nil {
			return // a counter takes everything
		}
	}
	if z.Close() != nil {
		return
	}
	at := place{file: dirManifests}
	switch packed := int64(n); {
	case packed > maxPacked:
		l.out.errorf("structure-size", at,
			"the manifests have %d bytes when packed by gzip, more than %d; shorten descriptions of CRDs, or split "+
				"the operator", packed, int64(maxPacked))
	case packed*100 >= maxPacked*fullPercent:
		l.out.warnf("structure-size", at,
			"the manifests have %d bytes when packed by gzip, %d %% of the %d that there may be", packed,
			packed*100/maxPacked, int64(maxPacked))
	}
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

var _ io.Writer = (*counter)(nil)

func (l structureCheck) oneCSV() {
	switch {
	case len(l.in.csvs) == 0:
		l.out.errorf("structure-csv", place{file: dirManifests},
			"the bundle has no ClusterServiceVersion; it needs exactly one (R-CAT-51)")
	case len(l.in.csvs) > 1:
		l.out.errorf("structure-csv", l.in.csvs[1].at(),
			"the bundle has %d ClusterServiceVersions; it needs exactly one (R-CAT-51)", len(l.in.csvs))
	}
}

// ownedCRDs compares what the CSV says that it owns with what the bundle brings (R-CAT-52).
func (l structureCheck) ownedCRDs() {
	if l.in.csv == nil {
		return
	}
	brought, owned := map[string]bool{}, map[string]bool{}
	for _, o := range l.in.objects {
		if o.kind == bundle.KindCRD {
			brought[o.name] = true
		}
	}
	for i, c := range l.in.csv.Spec.CRDs.Owned {
		if !brought[c.Name] && !owned[c.Name] {
			l.out.errorf("structure-owned-crd", l.in.csvObject.at("spec", "customresourcedefinitions", "owned", nth(i)),
				"the CSV owns the CRD %s, which is not in the bundle; add its manifest", c.Name)
		}
		owned[c.Name] = true
	}
	for _, o := range l.in.objects {
		if o.kind == bundle.KindCRD && !owned[o.name] {
			l.out.errorf("structure-owned-crd", o.at("metadata", "name"),
				"the CRD %s is in the bundle, but the CSV does not own it; add it to "+
					"customresourcedefinitions.owned, or remove it", o.name)
		}
	}
}

// duplicateCRDs finds CRDs that come twice, as manifests or in the CSV.
func (l structureCheck) duplicateCRDs() {
	names, kinds := map[string]bool{}, map[string]bool{}
	for _, o := range l.in.objects {
		if o.kind != bundle.KindCRD {
			continue
		}
		if names[o.name] {
			l.out.errorf("structure-duplicate-crd", o.at("metadata", "name"),
				"the bundle brings the CRD %s twice; keep one manifest", o.name)
			continue
		}
		names[o.name] = true
		spec := o.value.Child("spec")
		kind := spec.Child("group").Text() + "/" + spec.Child("names").Child("kind").Text()
		if kinds[kind] {
			l.out.errorf("structure-duplicate-crd", o.at("spec", "names", "kind"),
				"two CRDs of the bundle define the kind %s; keep one", kind)
		}
		kinds[kind] = true
	}
	if l.in.csv == nil {
		return
	}
	owned := map[bundle.GVK]bool{}
	for i, c := range l.in.csv.Spec.CRDs.Owned {
		key := bundle.GVK{Group: c.Name, Version: c.Version, Kind: c.Kind}
		if owned[key] {
			l.out.errorf("structure-duplicate-crd", l.in.csvObject.at("spec", "customresourcedefinitions", "owned",
				nth(i)),
				"the CSV owns version %s of %s twice; keep one", c.Version, c.Name)
		}
		owned[key] = true
	}
}
