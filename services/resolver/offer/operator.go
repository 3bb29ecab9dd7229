package offer

import (
	"encoding/json"
	"fmt"
	"slices"
	"unique"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
)

// Operator is what a resolution knows of a bundle or an installed CSV. It is immutable, and safe for concurrent use.
type Operator struct {
	Name       string
	Package    string // "" for an installed CSV of which it is unknown
	Version    semver.Version
	HasVersion bool
	Content    digest.Digest
	Image      string // of a bundle; where Content is "", its manifests are there alone
	Properties []catalog.Property
	// APIs are those that it provides, each once, in the order of the properties. Twice is one that it lists
	// again and thereby excludes itself (RESOLVER-NOTES 6.2); "" where there is none.
	APIs  []catalog.GVK
	Twice string
	// Requires is what it asks for, in the order of the properties, each once.
	Requires   []*Requirement
	Deprecated bool

	malformed string                       // why a requirement cannot be read
	apis      []unique.Handle[catalog.GVK] // APIs, to be compared at once
	packages  []packageVersion             // of every olm.package property (RESOLVER-NOTES 5.5)
	labels    []string
	judged    judgements
}

type packageVersion struct {
	name    string
	version semver.Version
	valid   bool
}

// NewOperator reads what an operator offers and asks for of its properties. Malformed ones of what it offers
// are passed over (RESOLVER-NOTES §11), unknown types are opaque (R-RES-20).
func NewOperator(name, pkg, version string, content digest.Digest, props []catalog.Property) *Operator {
	return newOperator(name, pkg, version, content, props, newSharing())
}

func newOperator(name, pkg, version string, content digest.Digest, props []catalog.Property,
	shared *sharing,
) *Operator {
	op := &Operator{Name: name, Package: pkg, Content: content, Properties: props}
	if v, err := semver.Parse(version); err == nil {
		op.Version, op.HasVersion = v, true
	}
	if pkg != "" {
		op.packages = append(op.packages, packageVersion{name: pkg, version: op.Version, valid: op.HasVersion})
	}
	for _, p := range props {
		if why := op.read(p, shared); why != "" && op.malformed == "" {
			op.malformed = why
		}
	}
	return op
}

// read takes one property. It returns why a requirement cannot be read.
func (op *Operator) read(p catalog.Property, shared *sharing) string {
	switch p.Type {
	case catalog.TypePackage:
		var v catalog.PackageProperty
		if json.Unmarshal(p.Value, &v) == nil {
			op.addPackage(v)
		}
	case catalog.TypeGVK:
		var v catalog.GVK
		if json.Unmarshal(p.Value, &v) == nil {
			op.addAPI(v)
		}
	case typeLabel:
		var v labelValue
		if json.Unmarshal(p.Value, &v) == nil {
			op.labels = append(op.labels, v.Label)
		}
	case catalog.TypeDeprecated:
		op.Deprecated = true
	case catalog.TypeGVKRequired, catalog.TypePackageRequired, typeLabelRequired, catalog.TypeConstraint:
		r, why := shared.requirement(p)
		if why == "" && !slices.Contains(op.Requires, r) {
			op.Requires = append(op.Requires, r)
		}
		return why
	}
	return ""
}

func (op *Operator) addPackage(v catalog.PackageProperty) {
	pv := packageVersion{name: v.PackageName}
	if parsed, err := semver.Parse(v.Version); err == nil {
		pv.version, pv.valid = parsed, true
	}
	if !op.HasVersion && v.PackageName == op.Package && pv.valid {
		op.Version, op.HasVersion = pv.version, true
	}
	op.packages = append(op.packages, pv)
}

func (op *Operator) addAPI(g catalog.GVK) {
	api := unique.Make(g)
	if slices.Contains(op.apis, api) {
		op.Twice = g.String()
		return
	}
	op.apis = append(op.apis, api)
	op.APIs = append(op.APIs, api.Value()) // its texts are shared by all bundles with the API
}

// Malformed is why a requirement cannot be read, "" where all can. It compiles the rules of all.
func (op *Operator) Malformed() string {
	if op.malformed != "" {
		return op.malformed
	}
	for _, r := range op.Requires {
		for q := range r.rules {
			if _, err := q.compiled(); err != nil {
				return fmt.Sprintf("%s: %s", r.Source, err)
			}
		}
	}
	return ""
}

// VersionText is the version as people read it, "" where there is none.
func (op *Operator) VersionText() string {
	if !op.HasVersion {
		return ""
	}
	return op.Version.String()
}

// weight is about how many bytes the operator takes in memory, without its requirements.
func (op *Operator) weight() int {
	n := operatorWeight + len(op.APIs)*apiWeight
	for _, p := range op.Properties {
		n += propertyWeight + len(p.Value)
	}
	return n
}
