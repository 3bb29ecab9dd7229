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

func (l *linter) csvName() {
	if l.csv == nil {
		return
	}
	at := l.csvObject.at("metadata", "name")
	if !value.Subdomain(l.csv.Name) {
		l.errorf("csv-name", at,
			"the name %q of the CSV is no DNS-1123 subdomain: lower-case letters, digits, '-' and '.'", l.csv.Name)
	}
	if !labelValue.MatchString(l.csv.Name) {
		l.errorf("csv-name", at,
			"the name %q of the CSV cannot be the value of a label: at most 63 letters, digits, '-', '_' and '.'",
			l.csv.Name)
	}
}

func (l *linter) installModes() {
	if l.csv == nil {
		return
	}
	modes := l.csv.Spec.InstallModes
	list := l.csvObject.at("spec", "installModes")
	if len(modes) == 0 {
		l.errorf("csv-install-modes", list,
			"the CSV has no installModes; say of each of the four whether it is supported")
		return
	}
	known := []string{"OwnNamespace", "SingleNamespace", "MultiNamespace", allNamespaces}
	seen := map[string]bool{}
	supported := false
	for i, m := range modes {
		at := l.csvObject.at("spec", "installModes", nth(i), "type")
		switch {
		case !slices.Contains(known, m.Type):
			l.errorf("csv-install-modes", at, "the install mode %q is not known; there are %s", m.Type,
				strings.Join(known, ", "))
		case seen[m.Type]:
			l.errorf("csv-install-modes", at, "the install mode %s occurs twice; keep one", m.Type)
		}
		seen[m.Type] = true
		supported = supported || m.Supported
	}
	if !supported {
		l.errorf("csv-install-modes", list,
			"the CSV supports no install mode, so that it can never be installed; support one")
	}
}

// conversion holds that a conversion webhook serves all namespaces: CRDs are cluster-wide.
func (l *linter) conversion() {
	if l.csv == nil {
		return
	}
	only := true
	for _, m := range l.csv.Spec.InstallModes {
		only = only && m.Supported == (m.Type == allNamespaces)
	}
	for i, raw := range l.csv.Spec.Webhooks {
		var w struct {
			Type string   `json:"type"`
			CRDs []string `json:"conversionCRDs"`
		}
		if json.Unmarshal(raw, &w) != nil {
			continue
		}
		if (w.Type == "ConversionWebhook" || len(w.CRDs) > 0) && !only {
			l.errorf("csv-conversion", l.csvObject.at("spec", "webhookdefinitions", nth(i)),
				"a CSV that converts CRDs must support the install mode %s alone; set the others to false",
				allNamespaces)
		}
	}
}

// examples holds that annotations with examples are JSON of what the operator provides.
func (l *linter) examples() {
	if l.csv == nil {
		return
	}
	provided := l.provided()
	if text := l.csv.Annotations[annotationExamples]; text != "" {
		var list []example
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			l.errorf("csv-examples", l.annotationAt(annotationExamples),
				"the annotation %s is no JSON list of objects: %v", annotationExamples, err)
		}
		shown := map[bundle.GVK]bool{}
		for _, e := range list {
			l.example(annotationExamples, e, provided)
			shown[e.gvk()] = true
		}
		for api := range provided {
			if len(list) > 0 && !shown[api] {
				l.warnf("csv-examples", l.annotationAt(annotationExamples),
					"the annotation %s has no example of %s (%s/%s), so that forms show an empty one; add it",
					annotationExamples, api.Kind, api.Group, api.Version)
			}
		}
	}
	if text := l.csv.Annotations[annotationInit]; text != "" {
		var one example
		if err := json.Unmarshal([]byte(text), &one); err != nil {
			l.errorf("csv-examples", l.annotationAt(annotationInit), "the annotation %s is no JSON object: %v",
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

func (l *linter) example(annotation string, e example, provided map[bundle.GVK]bool) {
	if !provided[e.gvk()] {
		l.errorf("csv-examples", l.annotationAt(annotation),
			"the annotation %s shows %s (%s), which the CSV does not own; correct apiVersion and kind", annotation,
			e.Kind, e.APIVersion)
	}
}

// provided are the APIs that the CSV owns.
func (l *linter) provided() map[bundle.GVK]bool {
	out := map[bundle.GVK]bool{}
	for _, c := range l.csv.Spec.CRDs.Owned {
		_, group, _ := strings.Cut(c.Name, ".")
		out[bundle.GVK{Group: group, Version: c.Version, Kind: c.Kind}] = true
	}
	for _, a := range l.csv.Spec.APIServices.Owned {
		out[bundle.GVK{Group: a.Group, Version: a.Version, Kind: a.Kind}] = true
	}
	return out
}

func (l *linter) annotationAt(key string) place {
	return l.csvObject.at("metadata", "annotations", key)
}

func (l *linter) substitution() {
	if l.csv != nil && l.csv.Spec.Release != "" && l.csv.Annotations[annotationSubstitutes] != "" {
		l.errorf("csv-release", l.annotationAt(annotationSubstitutes),
			"a CSV with a release cannot substitute another bundle; drop the annotation %s or spec.release",
			annotationSubstitutes)
	}
}

func (l *linter) relatedImages() {
	if l.csv == nil {
		return
	}
	for i, r := range l.csv.Spec.RelatedImages {
		at := l.csvObject.at("spec", "relatedImages", nth(i), "image")
		if why := value.Reference(r.Image); why != "" {
			l.errorf("csv-related-images", at, "the related image %q %s", r.Image, why)
		}
	}
}

// accounts finds ServiceAccount objects that the CSV brings already: their owner would be unclear.
func (l *linter) accounts() {
	if l.csv == nil {
		return
	}
	used := map[string]bool{}
	for _, d := range l.csv.Spec.Install.Spec.Deployments {
		if spec, err := d.Typed(); err == nil {
			used[spec.Template.Spec.ServiceAccountName] = true
		}
	}
	for _, o := range l.objects {
		if o.kind == "ServiceAccount" && used[o.name] {
			l.errorf("csv-service-account", o.at("metadata", "name"),
				"the ServiceAccount %s is the one of a deployment of the CSV, which makes it; remove the manifest",
				o.name)
		}
	}
}

// annotationCase finds annotations that only their case keeps from having a meaning.
func (l *linter) annotationCase() {
	if l.csv == nil {
		return
	}
	for key := range l.csv.Annotations {
		for _, known := range []string{
			"olm.skipRange", "olm.maxOpenShiftVersion", annotationProperties, annotationSubstitutes,
			"olm.operatorGroup", "olm.operatorNamespace", "olm.targetNamespaces", "olm.providedAPIs", "olm.copiedFrom",
		} {
			if key != known && strings.EqualFold(key, known) {
				l.warnf("csv-annotation-case", l.annotationAt(key),
					"the annotation %s has no meaning in this case; write %s", key, known)
			}
		}
	}
}

func (l *linter) propertiesAnnotation() {
	if l.csv != nil && l.csv.Annotations[annotationProperties] != "" {
		l.warnf("csv-properties", l.annotationAt(annotationProperties),
			"properties of the bundle stand in an annotation of the CSV; put them into metadata/properties.yaml")
	}
}
