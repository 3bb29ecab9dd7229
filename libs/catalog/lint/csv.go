package lint

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/value"
)

// Annotations of a CSV with a meaning here.
const (
	annotationExamples    = "alm-examples"
	annotationInit        = "operatorframework.io/initialization-resource"
	annotationSubstitutes = "olm.substitutesFor"
	annotationProperties  = "olm.properties"
)

const allNamespaces = "AllNamespaces"

// labelValue is the form of a label's value; the CSV's name becomes one.
var labelValue = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

// csvCheck holds the ClusterServiceVersion.
type csvCheck struct {
	in  *parsed
	out *report
}

// run makes the checks, which need exactly one CSV that can be read.
func (l csvCheck) run() {
	if l.in.csv == nil {
		return
	}
	l.csvName()
	l.installModes()
	l.conversion()
	l.examples()
	l.substitution()
	l.relatedImages()
	l.accounts()
	l.annotationCase()
	l.propertiesAnnotation()
}

func (l csvCheck) csvName() {
	at := l.in.csvObject.at("metadata", "name")
	if !value.Subdomain(l.in.csv.Name) {
		l.out.errorf("csv-name", at,
			"the name %q of the CSV is no DNS-1123 subdomain: lower-case letters, digits, '-' and '.'", l.in.csv.Name)
	}
	if !labelValue.MatchString(l.in.csv.Name) {
		l.out.errorf("csv-name", at,
			"the name %q of the CSV cannot be the value of a label: at most 63 letters, digits, '-', '_' and '.'",
			l.in.csv.Name)
	}
}

func (l csvCheck) installModes() {
	modes := l.in.csv.Spec.InstallModes
	list := l.in.csvObject.at("spec", "installModes")
	if len(modes) == 0 {
		l.out.errorf("csv-install-modes", list,
			"the CSV has no installModes; say of each of the four whether it is supported")
		return
	}
	known := []string{"OwnNamespace", "SingleNamespace", "MultiNamespace", allNamespaces}
	seen := map[string]bool{}
	supported := false
	for i, m := range modes {
		at := l.in.csvObject.at("spec", "installModes", nth(i), "type")
		switch {
		case !slices.Contains(known, m.Type):
			l.out.errorf("csv-install-modes", at, "the install mode %q is not known; there are %s", m.Type,
				strings.Join(known, ", "))
		case seen[m.Type]:
			l.out.errorf("csv-install-modes", at, "the install mode %s occurs twice; keep one", m.Type)
		}
		seen[m.Type] = true
		supported = supported || m.Supported
	}
	if !supported {
		l.out.errorf("csv-install-modes", list,
			"the CSV supports no install mode, so that it can never be installed; support one")
	}
}

// conversion holds that a conversion webhook serves all namespaces: CRDs are cluster-wide.
func (l csvCheck) conversion() {
	only := true
	for _, m := range l.in.csv.Spec.InstallModes {
		only = only && m.Supported == (m.Type == allNamespaces)
	}
	for i, raw := range l.in.csv.Spec.Webhooks {
		var w struct {
			Type string   `json:"type"`
			CRDs []string `json:"conversionCRDs"`
		}
		if json.Unmarshal(raw, &w) != nil {
			continue
		}
		if (w.Type == "ConversionWebhook" || len(w.CRDs) > 0) && !only {
			l.out.errorf("csv-conversion", l.in.csvObject.at("spec", "webhookdefinitions", nth(i)),
				"a CSV that converts CRDs must support the install mode %s alone; set the others to false",
				allNamespaces)
		}
	}
}

// examples holds that annotations with examples are JSON of what the operator provides.
func (l csvCheck) examples() {
	provided := l.provided()
	if text := l.in.csv.Annotations[annotationExamples]; text != "" {
		var list []example
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			l.out.errorf("csv-examples", l.in.annotationAt(annotationExamples),
				"the annotation %s is no JSON list of objects: %v", annotationExamples, err)
		}
		shown := map[bundle.GVK]bool{}
		for _, e := range list {
			l.example(annotationExamples, e, provided)
			shown[e.gvk()] = true
		}
		for api := range provided {
			if len(list) > 0 && !shown[api] {
				l.out.warnf("csv-examples", l.in.annotationAt(annotationExamples),
					"the annotation %s has no example of %s (%s/%s), so that forms show an empty one; add it",
					annotationExamples, api.Kind, api.Group, api.Version)
			}
		}
	}
	if text := l.in.csv.Annotations[annotationInit]; text != "" {
		var one example
		if err := json.Unmarshal([]byte(text), &one); err != nil {
			l.out.errorf("csv-examples", l.in.annotationAt(annotationInit), "the annotation %s is no JSON object: %v",
				annotationInit, err)
			return
		}
		l.example(annotationInit, one, provided)
	}
}

type example struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

func (e example) gvk() bundle.GVK {
	group, version, ok := strings.Cut(e.APIVersion, "/")
	if !ok {
		group, version = "", e.APIVersion
	}
	return bundle.GVK{Group: group, Version: version, Kind: e.Kind}
}

func (l csvCheck) example(annotation string, e example, provided map[bundle.GVK]bool) {
	if !provided[e.gvk()] {
		l.out.errorf("csv-examples", l.in.annotationAt(annotation),
			"the annotation %s shows %s (%s), which the CSV does not own; correct apiVersion and kind", annotation,
			e.Kind, e.APIVersion)
	}
}

// provided are the APIs that the CSV owns.
func (l csvCheck) provided() map[bundle.GVK]bool {
	out := map[bundle.GVK]bool{}
	for _, c := range l.in.csv.Spec.CRDs.Owned {
		_, group, _ := strings.Cut(c.Name, ".")
		out[bundle.GVK{Group: group, Version: c.Version, Kind: c.Kind}] = true
	}
	for _, a := range l.in.csv.Spec.APIServices.Owned {
		out[bundle.GVK{Group: a.Group, Version: a.Version, Kind: a.Kind}] = true
	}
	return out
}

func (l csvCheck) substitution() {
	if l.in.csv.Spec.Release != "" && l.in.csv.Annotations[annotationSubstitutes] != "" {
		l.out.errorf("csv-release", l.in.annotationAt(annotationSubstitutes),
			"a CSV with a release cannot substitute another bundle; drop the annotation %s or spec.release",
			annotationSubstitutes)
	}
}

func (l csvCheck) relatedImages() {
	for i, r := range l.in.csv.Spec.RelatedImages {
		at := l.in.csvObject.at("spec", "relatedImages", nth(i), "image")
		if why := value.Reference(r.Image); why != "" {
			l.out.errorf("csv-related-images", at, "the related image %q %s", r.Image, why)
		}
	}
}

// accounts finds ServiceAccount objects that the CSV brings already: their owner would be unclear.
func (l csvCheck) accounts() {
	used := map[string]bool{}
	for _, d := range l.in.csv.Spec.Install.Spec.Deployments {
		if spec, err := d.Typed(); err == nil {
			used[spec.Template.Spec.ServiceAccountName] = true
		}
	}
	for _, o := range l.in.objects {
		if o.kind == "ServiceAccount" && used[o.name] {
			l.out.errorf("csv-service-account", o.at("metadata", "name"),
				"the ServiceAccount %s is the one of a deployment of the CSV, which makes it; remove the manifest",
				o.name)
		}
	}
}

// annotationCase finds annotations that only their case keeps from having a meaning.
func (l csvCheck) annotationCase() {
	for key := range l.in.csv.Annotations {
		for _, known := range []string{
			"olm.skipRange", "olm.maxOpenShiftVersion", annotationProperties, annotationSubstitutes,
			"olm.operatorGroup", "olm.operatorNamespace", "olm.targetNamespaces", "olm.providedAPIs", "olm.copiedFrom",
		} {
			if key != known && strings.EqualFold(key, known) {
				l.out.warnf("csv-annotation-case", l.in.annotationAt(key),
					"the annotation %s has no meaning in this case; write %s", key, known)
			}
		}
	}
}

func (l csvCheck) propertiesAnnotation() {
	if l.in.csv.Annotations[annotationProperties] != "" {
		l.out.warnf("csv-properties", l.in.annotationAt(annotationProperties),
			"properties of the bundle stand in an annotation of the CSV; put them into metadata/properties.yaml")
	}
}
