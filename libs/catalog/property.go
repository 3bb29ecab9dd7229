package catalog

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/blang/semver/v4"
	"go.yaml.in/yaml/v3"
)

// Property types with a meaning (§1.4). Any other is opaque.
const (
	TypePackage         = "olm.package"
	TypeGVK             = "olm.gvk"
	TypePackageRequired = "olm.package.required"
	TypeGVKRequired     = "olm.gvk.required"
	TypeConstraint      = "olm.constraint"
	TypeBundleObject    = "olm.bundle.object"
	TypeCSVMetadata     = "olm.csv.metadata"
	TypeDeprecated      = "olm.deprecated"
	TypeMaxOpenShift    = "olm.maxOpenShiftVersion"
)

// PackageProperty is the value of olm.package: the identity of a bundle.
type PackageProperty struct {
	PackageName string `json:"packageName"`
	Version     string `json:"version"`
	Release     string `json:"release,omitempty"`
}

// GVK is the value of olm.gvk and olm.gvk.required: an API.
type GVK struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

// String is "Kind (group/version)".
func (g GVK) String() string { return fmt.Sprintf("%s (%s/%s)", g.Kind, g.Group, g.Version) }

// PackageRequired is the value of olm.package.required: another package in a range of versions.
type PackageRequired struct {
	PackageName  string `json:"packageName"`
	VersionRange string `json:"versionRange"`
}

// propertyNode is one property as it stands in a document.
type propertyNode struct{ typ, value, node *yaml.Node }

func (p propertyNode) typeName() (string, bool) {
	if p.typ == nil {
		return "", false
	}
	n := resolve(p.typ)
	return n.Value, n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && n.Value != ""
}

func (p propertyNode) at(b blob) place { return b.at(p.node) }

// propertyValues decodes the values of all properties of one type.
func propertyValues[T any](b Bundle, typ string) ([]T, error) {
	var out []T
	for _, p := range b.Properties {
		if p.Type != typ {
			continue
		}
		var v T
		if err := json.Unmarshal(p.Value, &v); err != nil {
			return nil, fmt.Errorf("property %s of bundle %s: %w", typ, b.Name, err)
		}
		out = append(out, v)
	}
	return out, nil
}

// Provides returns the APIs that the bundle offers (olm.gvk).
func (b Bundle) Provides() ([]GVK, error) { return propertyValues[GVK](b, TypeGVK) }

// RequiredGVKs returns the APIs that the bundle needs (olm.gvk.required).
func (b Bundle) RequiredGVKs() ([]GVK, error) { return propertyValues[GVK](b, TypeGVKRequired) }

// RequiredPackages returns the packages that the bundle needs (olm.package.required).
func (b Bundle) RequiredPackages() ([]PackageRequired, error) {
	return propertyValues[PackageRequired](b, TypePackageRequired)
}

// Deprecated reports whether the bundle may stay installed but not be chosen (R-RES-14).
func (b Bundle) Deprecated() bool {
	for _, p := range b.Properties {
		if p.Type == TypeDeprecated {
			return true
		}
	}
	return false
}

var (
	dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	dnsName  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	kindName = regexp.MustCompile(`^[A-Za-z]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?$`)
	// reference is a pull specification: [host[:port]/]path[:tag][@digest] (R-CAT-28).
	reference = regexp.MustCompile(`^([a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*(:[0-9]+)?/)?` +
		`[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*` +
		`(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$`)
)

const maxDNSName = 253

// check returns why g breaks the Kubernetes naming rules (R-CAT-17), "" where it does not.
func (g GVK) check() string {
	switch {
	case g.Group != "" && (len(g.Group) > maxDNSName || !dnsName.MatchString(g.Group)):
		return fmt.Sprintf("group %q is not a DNS name", g.Group)
	case !dnsLabel.MatchString(g.Version):
		return fmt.Sprintf("version %q is not a DNS label", g.Version)
	case !kindName.MatchString(g.Kind):
		return fmt.Sprintf("kind %q is not a kind", g.Kind)
	}
	return ""
}

// ParseRange parses a range of versions: ">=1.0.0 <2.0.0 !1.2.1", "||" between alternatives (R-CAT-17).
func ParseRange(s string) (semver.Range, error) {
	r, err := semver.ParseRange(s)
	if err != nil {
		return nil, fmt.Errorf("%q is not a range of versions such as \">=1.0.0 <2.0.0\": %w", s, err)
	}
	return r, nil
}

// checkProperty returns why the value of a known property type does not have its form (R-CAT-25).
func checkProperty(p Property) string {
	switch p.Type {
	case TypeGVK, TypeGVKRequired:
		var g GVK
		if err := json.Unmarshal(p.Value, &g); err != nil {
			return formError(err)
		}
		return g.check()
	case TypePackageRequired:
		var r PackageRequired
		if err := json.Unmarshal(p.Value, &r); err != nil {
			return formError(err)
		}
		if r.PackageName == "" {
			return "packageName is empty"
		}
		if _, err := ParseRange(r.VersionRange); err != nil {
			return "versionRange " + err.Error()
		}
	case TypePackage:
		var v PackageProperty
		if err := json.Unmarshal(p.Value, &v); err != nil {
			return formError(err)
		}
	case TypeConstraint:
		if len(p.Value) > MaxConstraintBytes {
			return fmt.Sprintf("%d bytes are more than %d (R-RES-29)", len(p.Value), MaxConstraintBytes)
		}
		var v map[string]json.RawMessage
		if err := json.Unmarshal(p.Value, &v); err != nil {
			return formError(err)
		}
	}
	return ""
}

func formError(err error) string { return strings.TrimPrefix(err.Error(), "json: ") }

// checkRelease returns why a release breaks R-CAT-27.
func checkRelease(r string) string {
	const maxRelease = 20
	if len(r) > maxRelease {
		return fmt.Sprintf("has more than %d characters", maxRelease)
	}
	for id := range strings.SplitSeq(r, ".") {
		if _, err := semver.NewPRVersion(id); err != nil {
			return "is not dot-separated pre-release identifiers: " + err.Error()
		}
	}
	return ""
}
