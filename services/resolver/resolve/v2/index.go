package v2

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
)

// Package is a catalog package made ready for resolution: versions and requirements parsed once, channels
// in order. It is immutable and may be shared between resolutions.
type Package struct {
	Name     string
	Digest   digest.Digest
	channels []channel // default channel first, then by name (R-RES-35 rule 5)
	apis     map[catalog.GVK]bool
	weight   int // bytes of the document, for bounded caches
}

// channel is one channel of a Package. entries are what can be chosen, nearest the head first and
// without those that another entry skips; all holds every entry with a bundle by name (R-GRA-12).
type channel struct {
	name      string
	isDefault bool
	entries   []entry
	all       map[string]entry
	err       error // the graph is malformed (R-GRA-15)
}

type entry struct {
	name      string
	replaces  string
	skips     []string
	skipRange semver.Range // nil where absent or unreadable (RESOLVER-NOTES 2.4)
	bundle    *operator
}

// operator is what the search knows of a bundle or an installed CSV.
type operator struct {
	name       string
	pkg        string
	version    semver.Version
	hasVersion bool
	content    digest.Digest
	image      string // of a bundle; where content is "", its manifests are there alone
	properties []catalog.Property
	packages   []packageVersion // of every olm.package property (RESOLVER-NOTES 5.5)
	provides   []catalog.GVK
	labels     []string
	requires   []requirement
	deprecated bool
	malformed  string // why a requirement cannot be read; "" where all can
	// slots are the names of what at most one chosen operator may hold: its name, its package, its APIs.
	slots []string
	twice string // an API that it lists twice and thereby excludes itself (RESOLVER-NOTES 6.2)
}

type packageVersion struct {
	name    string
	version semver.Version
	valid   bool
}

// Index makes a package ready. It never fails: what cannot be read is told when it matters.
func Index(p catalog.Package, d digest.Digest) *Package {
	out := &Package{Name: p.Name, Digest: d, apis: map[catalog.GVK]bool{}}
	bundles := make(map[string]*operator, len(p.Bundles))
	for _, b := range p.Bundles {
		op := newOperator(b.Name, p.Name, b.Version, b.Content, b.Properties)
		op.image = b.Image
		bundles[b.Name] = op
		for _, api := range op.provides {
			out.apis[api] = true
		}
		for _, prop := range b.Properties {
			out.weight += len(prop.Value)
		}
	}
	for _, c := range p.Channels {
		out.weight += len(c.Entries) * entryWeight
		out.channels = append(out.channels, newChannel(p, c, bundles))
	}
	slices.SortFunc(out.channels, func(a, b channel) int {
		return cmp.Or(compareBool(b.isDefault, a.isDefault), cmp.Compare(a.name, b.name))
	})
	return out
}

// entryWeight is about what an entry takes in memory beside its bundle's properties.
const entryWeight = 200

// APIs are all that some bundle of the package provides, sorted.
func (p *Package) APIs() []catalog.GVK {
	out := make([]catalog.GVK, 0, len(p.apis))
	for api := range p.apis {
		out = append(out, api)
	}
	slices.SortFunc(out, func(a, b catalog.GVK) int { return cmp.Compare(APIName(a), APIName(b)) })
	return out
}

// Provides says whether some bundle of the package provides an API.
func (p *Package) Provides(api catalog.GVK) bool { return p.apis[api] }

// Weight is about how many bytes the package takes in memory, for caches.
func (p *Package) Weight() int { return p.weight }

// channelNames are for explanations.
func (p *Package) channelNames() []string {
	out := make([]string, 0, len(p.channels))
	for _, c := range p.channels {
		out = append(out, c.name)
	}
	return out
}

func newOperator(name, pkg, version string, content digest.Digest, props []catalog.Property) *operator {
	op := &operator{name: name, pkg: pkg, content: content, properties: props}
	if v, err := semver.Parse(version); err == nil {
		op.version, op.hasVersion = v, true
	}
	if pkg != "" {
		op.packages = append(op.packages, packageVersion{name: pkg, version: op.version, valid: op.hasVersion})
	}
	for _, p := range props {
		if why := op.read(p); why != "" && op.malformed == "" {
			op.malformed = why
		}
	}
	op.occupy()
	return op
}

// occupy names the operator's slots.
func (op *operator) occupy() {
	op.slots = append(op.slots, slotName+op.name)
	if op.pkg != "" {
		op.slots = append(op.slots, slotPackage+op.pkg)
	}
	for i, api := range op.provides {
		if slices.Contains(op.provides[:i], api) {
			op.twice = api.String()
			continue
		}
		op.slots = append(op.slots, slotAPI+APIName(api))
	}
}

// read takes one property. It returns why a requirement cannot be read; other malformed properties are
// passed over (RESOLVER-NOTES §11), unknown types are opaque (R-RES-20).
func (op *operator) read(p catalog.Property) string {
	switch p.Type {
	case catalog.TypePackage:
		var v catalog.PackageProperty
		if json.Unmarshal(p.Value, &v) == nil {
			op.addPackage(v)
		}
	case catalog.TypeGVK:
		var v catalog.GVK
		if json.Unmarshal(p.Value, &v) == nil {
			op.provides = append(op.provides, v)
		}
	case typeLabel:
		var v labelValue
		if json.Unmarshal(p.Value, &v) == nil {
			op.labels = append(op.labels, v.Label)
		}
	case catalog.TypeDeprecated:
		op.deprecated = true
	default:
		return op.readRequirement(p)
	}
	return ""
}

func (op *operator) addPackage(v catalog.PackageProperty) {
	pv := packageVersion{name: v.PackageName}
	if parsed, err := semver.Parse(v.Version); err == nil {
		pv.version, pv.valid = parsed, true
	}
	if !op.hasVersion && v.PackageName == op.pkg && pv.valid {
		op.version, op.hasVersion = pv.version, true
	}
	op.packages = append(op.packages, pv)
}

func (op *operator) readRequirement(p catalog.Property) string {
	r, ok, err := parseRequirement(p)
	if err != nil {
		return err.Error()
	}
	if ok && !slices.ContainsFunc(op.requires, func(o requirement) bool { return o.source == r.source && rawEqual(o.raw, r.raw) }) {
		op.requires = append(op.requires, r)
	}
	return ""
}

// versionText is the version as people read it.
func (op *operator) versionText() string {
	if !op.hasVersion {
		return ""
	}
	return op.version.String()
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
