package display

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog"
)

// Annotations with a meaning on screens (R-UI-1, R-UI-4).
const (
	annotationCapability = "capabilities"
	annotationCategories = "categories"
	annotationSummary    = "description"
	annotationFeatures   = "operators.openshift.io/infrastructure-features"
	featurePrefix        = "features.operators.openshift.io/"
)

// Metadata is the display part of a CSV: olm.csv.metadata, or the same fields of the CSV itself
// (R-CAT-18). Fields whose form is for programs to show are kept as they are.
type Metadata struct {
	DisplayName  string
	Description  string // Markdown
	Provider     Provider
	Keywords     []string
	Links        []Link
	Maintainers  []Maintainer
	Maturity     string
	MinKube      string
	InstallModes []InstallMode
	Annotations  map[string]string
	Labels       map[string]string
	CRDs         json.RawMessage
	APIServices  json.RawMessage
	NativeAPIs   json.RawMessage
}

// Provider is who publishes an operator.
type Provider struct {
	Name string `json:"name,omitempty"`
	URL  string `json:"url,omitempty"`
}

// Link is a name and a web address.
type Link struct {
	Name string `json:"name,omitempty"`
	URL  string `json:"url,omitempty"`
}

// Maintainer is somebody to write to.
type Maintainer struct {
	Name  string `json:"name,omitempty"`
	Email string `json:"email,omitempty"`
}

// InstallMode is one of the four modes and whether the operator supports it.
type InstallMode struct {
	Type      string `json:"type"`
	Supported bool   `json:"supported"`
}

// Read reads the display part of a bundle. Each field is read by itself: what has another form is as if absent.
func Read(b catalog.Bundle) Metadata {
	var fields map[string]json.RawMessage
	// Not an object: there is nothing to show.
	if json.Unmarshal(b.Metadata, &fields) != nil {
		return Metadata{}
	}
	return Metadata{
		DisplayName: field[string](fields, "displayName"), Description: field[string](fields, "description"),
		Provider: field[Provider](fields, "provider"), Keywords: field[[]string](fields, "keywords"),
		Links: field[[]Link](fields, "links"), Maintainers: field[[]Maintainer](fields, "maintainers"),
		Maturity: field[string](fields, "maturity"), MinKube: field[string](fields, "minKubeVersion"),
		InstallModes: field[[]InstallMode](fields, "installModes"),
		Annotations:  field[map[string]string](fields, "annotations"),
		Labels:       field[map[string]string](fields, "labels"), CRDs: fields["crdDescriptions"],
		APIServices: fields["apiServiceDefinitions"], NativeAPIs: fields["nativeAPIs"],
	}
}

func field[T any](fields map[string]json.RawMessage, name string) T {
	var v, none T
	if raw, ok := fields[name]; !ok || json.Unmarshal(raw, &v) != nil {
		return none
	}
	return v
}

// Summary is the one sentence that stands in lists.
func (m Metadata) Summary() string { return strings.TrimSpace(m.Annotations[annotationSummary]) }

// Capabilities are the levels of maturity, from the least.
func Capabilities() []string {
	return []string{"Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"}
}

// Capability is the level of maturity, "" where the author gives none that is known.
func (m Metadata) Capability() string {
	given := strings.TrimSpace(m.Annotations[annotationCapability])
	for _, known := range Capabilities() {
		if strings.EqualFold(given, known) {
			return known
		}
	}
	return ""
}

// Categories are those that the author lists, separated by commas.
func (m Metadata) Categories() []string {
	return words(strings.Split(m.Annotations[annotationCategories], ","))
}

// Modes are the install modes that the operator supports, sorted.
func (m Metadata) Modes() []string {
	var out []string
	for _, mode := range m.InstallModes {
		if mode.Supported {
			out = append(out, mode.Type)
		}
	}
	return words(out)
}

// older are words of the list annotation that the single ones spell otherwise.
var older = map[string]string{"fips": "fips-compliant", "proxy": "proxy-aware"}

// Features are the infrastructure features (R-UI-1, R-DIS-3), sorted: from the annotation of each, and from
// the list that was the form before. Where both speak of one, its own annotation decides.
func (m Metadata) Features() []string {
	has := map[string]bool{}
	var listed []string
	if json.Unmarshal([]byte(m.Annotations[annotationFeatures]), &listed) == nil {
		for _, f := range listed {
			f = strings.ToLower(strings.TrimSpace(f))
			if now, ok := older[f]; ok {
				f = now
			}
			has[f] = true
		}
	}
	for key, value := range m.Annotations {
		if f, ok := strings.CutPrefix(key, featurePrefix); ok && (value == "true" || value == "false") {
			has[f] = value == "true"
		}
	}
	var out []string
	for f, yes := range has {
		if yes {
			out = append(out, f)
		}
	}
	return words(out)
}

// words sorts, and drops what is empty or there twice.
func words(list []string) []string {
	out := []string{}
	for _, w := range list {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
