package resolution

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/sat"
)

// Semantics is the version of the rules by which package resolve decides. A recorded decision names the version that
// made it. The first rule that changes after a release gets a new version, and the old one stays callable (DESIGN D5,
// ADR 0022).
const Semantics = "chandler.resolve.v3"

// Approval modes (R-SUB-3).
const (
	Automatic = "Automatic"
	Manual    = "Manual"
)

// Input is everything that a resolution depends on. The order of its lists does not matter.
type Input struct {
	Semantics      string // "" is Semantics
	Scope          Scope
	View           View
	Installed      []Installed
	Subscriptions  []Subscription
	OperatorGroups []OperatorGroup
	Policy         Policy
	// Effort bounds the searches of several resolutions together; nil sets no bound. It is no part of the record: only
	// questions set it, never a decision.
	Effort *Effort
}

// Effort is what the searches of several resolutions may spend together. Where it is spent, what is hard fails as such.
type Effort = sat.Effort

// Scope is one namespace of one cluster.
type Scope struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
}

// Policy is what the fleet's owner decided, beside the intents.
type Policy struct {
	// MaxConflicts bounds the conflicts of the search in one partition; 0 is search.MaxConflicts.
	MaxConflicts int `json:"maxConflicts,omitempty"`
	// MaxReach bounds what is compared for one root; 0 is graph.MaxReach.
	MaxReach int `json:"maxReach,omitempty"`
	// Bounds are versions that may not be chosen, by name of the policy. What is installed stays.
	Bounds []Bound `json:"bounds,omitempty"`
}

// Bound is what an approval policy, or a rollout, says of the versions of some packages, narrowed to one scope. All
// bounds that fit a bundle hold at once.
type Bound struct {
	Policy string `json:"policy"` // name of the approval policy, "" for a rollout's
	// Rollout is that of a fleet, as fleet subscription/number; "" for a policy's.
	Rollout string `json:"rollout,omitempty"`
	// Packages are names, or a prefix followed by "*"; none is every package. Catalogs likewise, as
	// CatalogKey.String writes them.
	Packages []string `json:"packages,omitempty"`
	Catalogs []string `json:"catalogs,omitempty"`
	Pin      string   `json:"pin,omitempty"`     // exactly this version, or this CSV name
	Range    string   `json:"range,omitempty"`   // a range of blang/semver
	Ceiling  string   `json:"ceiling,omitempty"` // never beyond this version
}

// OperatorGroup is one of the namespace's; exactly one is needed (R-RES-5).
type OperatorGroup struct {
	Name   string `json:"name"`
	Shared bool   `json:"shared,omitempty"` // colocation: shared, OLM's joint plans (R-RES-63)
	// ExcludeGlobalCatalogs hides catalogs that do not belong to the namespace (R-RES-5).
	ExcludeGlobalCatalogs bool `json:"excludeGlobalCatalogs,omitempty"`
	// FailForward is upgradeStrategy TechPreviewUnsafeFailForward (R-RES-44).
	FailForward bool `json:"failForward,omitempty"`
}

// CatalogNamed is the catalog that a subscription names: the one of that namespace, be it hidden or seen, else the
// hub's of that name (R-CAT-85).
func (in Input) CatalogNamed(s Subscription) CatalogKey {
	k := CatalogKey{Name: s.Catalog, Namespace: s.CatalogNamespace}
	if s.CatalogHidden || slices.ContainsFunc(in.View.Catalogs(), func(c Catalog) bool { return c.Key == k }) {
		return k
	}
	return CatalogKey{Name: s.Catalog}
}

// Subscription is the intent to follow a channel (R-RES-10).
type Subscription struct {
	Name             string `json:"name"`
	Package          string `json:"package"`
	Channel          string `json:"channel,omitempty"` // "" is any, the default channel first
	Catalog          string `json:"catalog,omitempty"` // "" is any visible one
	CatalogNamespace string `json:"catalogNamespace,omitempty"`
	// CatalogHidden says that there is a catalog of that name in CatalogNamespace, which this namespace does not see:
	// then no other one of the name is meant (R-CAT-85). Inputs of before this was known are read as they were.
	CatalogHidden bool   `json:"catalogHidden,omitempty"`
	StartingCSV   string `json:"startingCSV,omitempty"` // counts while nothing is installed (R-GRA-12)
	Approval      string `json:"approval"`
	Config        string `json:"config,omitempty"` // commitment of spec.config
	// InstalledCSV is what the subscription follows, where Installed.Subscription names another one that follows
	// the same CSV; else it may be left out.
	InstalledCSV string `json:"installedCSV,omitempty"`
	// Rollback is the way back that somebody asked for; empty where nobody did.
	Rollback Rollback `json:"rollback,omitzero"`
	// Avoids are CSVs that are no candidates: a rollout went back from them.
	Avoids []string `json:"avoids,omitempty"`
}

// Rollback leads from one CSV to an earlier one. While From is installed, To is what the subscription wants, from any
// channel; afterwards From is no candidate any more, so that an upgrade does not bring back what was left.
type Rollback struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Installed is one CSV of the namespace that is not a copy.
type Installed struct {
	CSV string `json:"csv"`
	// Package is "" where it is unknown; such a CSV blocks no package (RESOLVER-NOTES 7.1).
	Package string        `json:"package,omitempty"`
	Version string        `json:"version,omitempty"`
	Content digest.Digest `json:"content,omitempty"`
	Phase   string        `json:"phase,omitempty"`
	// Properties are what the CSV offers and asks for.
	Properties []catalog.Property `json:"properties,omitempty"`
	// Subscription follows this CSV; "" where none does (R-RES-13).
	Subscription string `json:"subscription,omitempty"`
	// Replaces is the CSV that this one replaced, where known.
	Replaces string `json:"replaces,omitempty"`
}

// CatalogKey names a catalog as a namespace sees it.
type CatalogKey struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"` // "" for the hub's
}

// String is name or namespace/name.
func (k CatalogKey) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// Compare orders keys by namespace and name.
func (k CatalogKey) Compare(o CatalogKey) int {
	return cmp.Or(cmp.Compare(k.Namespace, o.Namespace), cmp.Compare(k.Name, o.Name))
}

// Catalog is one that the namespace sees.
type Catalog struct {
	Key      CatalogKey `json:"key"`
	Priority int32      `json:"priority,omitempty"` // higher is preferred
	Ready    bool       `json:"ready"`              // a revision is served
	Revision string     `json:"revision,omitempty"`
}

// View answers questions about the catalogs that a namespace sees. During one Resolve the same question
// must get the same answer. Answers are shared and must not be changed.
type View interface {
	// Catalogs are the visible ones, in any order.
	Catalogs() []Catalog
	// Package is one package of a catalog, nil where the catalog has none of that name.
	Package(c CatalogKey, name string) *offer.Package
	// Providers are the names of the packages of a catalog of which some bundle provides an API, sorted.
	Providers(c CatalogKey, api catalog.GVK) []string
	// Packages are the names of all packages of a catalog, sorted.
	Packages(c CatalogKey) []string
	CatalogStatus
}

// CatalogStatus is what the log says of a catalog beside its content.
type CatalogStatus interface {
	// Image is what became of fetching a bundle image that a catalog names for a bundle.
	Image(c CatalogKey, b BundleImage) Fetched
	// Health is how a catalog does whose namespace is strict about it, HealthIgnored otherwise.
	Health(c CatalogKey) Health
}

// BundleImage is an image that a catalog names for one of its bundles. What comes of fetching it belongs to
// all three: an image holds one bundle, and a catalog may name it for another by mistake.
type BundleImage struct{ Image, Package, Bundle string }

// ReadName is the form of read sets.
func (b BundleImage) ReadName() string { return b.Image + " " + b.Package + " " + b.Bundle }

// maxImageText bounds the three texts of a bundle image, each: together they are the key of an index, which takes
// some 2,700 bytes. The longest real ones have 200.
const maxImageText = 600

// Askable says whether an image can be asked for at all. Catalogs are made by others, and one with texts that no
// database takes must not hold up a namespace.
func (b BundleImage) Askable() bool {
	for _, text := range []string{b.Image, b.Package, b.Bundle} {
		if len(text) > maxImageText || strings.Contains(text, "\x00") || !utf8.ValidString(text) {
			return false
		}
	}
	return true
}

// Health is how a catalog does whose namespace is strict (R-CAT-99), in the form of read sets.
type Health string

// The states; an unhealthy one has its reason behind it.
const (
	HealthIgnored Health = "" // its namespace is not strict
	Healthy       Health = "Healthy"
	Loading       Health = "Loading" // for the first time
)

// unhealthyAnswer goes before the reason.
const unhealthyAnswer = "Unhealthy:"

// Unhealthy is the health of a catalog that could not be loaded.
func Unhealthy(reason string) Health { return Health(unhealthyAnswer + reason) }

// Unhealthy returns why a catalog is unhealthy; ok is false where it is not.
func (h Health) Unhealthy() (reason string, ok bool) {
	return strings.CutPrefix(string(h), unhealthyAnswer)
}

// Fetched is what became of fetching a bundle image; the zero value is that it is not fetched yet.
type Fetched struct {
	Content digest.Digest // of the canonical bundle
	Reason  string        // why there is none
}

// failedAnswer goes before the reason in the answer of a read.
const failedAnswer = "failed:"

// Answer is the form of read sets.
func (f Fetched) Answer() string {
	if f.Reason != "" {
		return failedAnswer + f.Reason
	}
	return string(f.Content)
}

// ParseFetched reads the answer of a ReadImage.
func ParseFetched(answer string) Fetched {
	if reason, failed := strings.CutPrefix(answer, failedAnswer); failed {
		return Fetched{Reason: reason}
	}
	return Fetched{Content: digest.Digest(answer)}
}

// Read is one question asked of the View, with its answer: a digest, or names joined by ",".
type Read struct {
	Kind    ReadKind   `json:"kind"`
	Catalog CatalogKey `json:"catalog"`
	Name    string     `json:"name,omitempty"`
	Answer  string     `json:"answer,omitempty"` // "" is a miss
}

// ReadKind is what was asked.
type ReadKind string

// The kinds of question.
const (
	ReadVisible ReadKind = "visible" // all visible catalogs; a new one matters
	ReadCatalog ReadKind = "catalog" // whether a catalog is there and ready; Answer ready
	ReadPackage ReadKind = "package" // Name a package; Answer its digest
	ReadAPI     ReadKind = "api"     // Name a GVK as APIName writes it; Answer the packages that provide it
	ReadNames   ReadKind = "names"   // the names of all packages; Answer these
	ReadImage   ReadKind = "image"   // Name as BundleImage.ReadName; Answer its content's digest, or why there is none
	ReadHealth  ReadKind = "health"  // of a catalog whose namespace is strict; Answer a Health
)

// APIName writes a GVK as group/version/kind, the form of read sets.
func APIName(g catalog.GVK) string { return g.Group + "/" + g.Version + "/" + g.Kind }

// Compare is the order of read sets. It leaves out the answer: a read set has one for each question.
func (r Read) Compare(o Read) int {
	return cmp.Or(cmp.Compare(r.Kind, o.Kind), r.Catalog.Compare(o.Catalog), cmp.Compare(r.Name, o.Name))
}

// Record is the input of a resolution as it is stored: enough to resolve again and get the same bytes,
// with the packages' documents kept by the catalog under their digests.
type Record struct {
	Semantics      string          `json:"semantics"`
	Scope          Scope           `json:"scope"`
	Policy         Policy          `json:"policy"`
	OperatorGroups []OperatorGroup `json:"operatorGroups"`
	Subscriptions  []Subscription  `json:"subscriptions"`
	Installed      []Installed     `json:"installed"`
	Catalogs       []Catalog       `json:"catalogs"` // without revisions: an unrelated change must not alter the input
	Reads          []Read          `json:"reads"`
}

// RecordType is the type prefix of an input's digest.
const RecordType = "chandler.resolution-input.v1"

// Digest is the digest of everything consulted.
func (r Record) Digest() (digest.Digest, error) { return digest.JSON(RecordType, r) }

// Canonical brings the lists of an input into one order.
func (in Input) Canonical() Input {
	in.Semantics = cmp.Or(in.Semantics, Semantics)
	in.Subscriptions = slices.SortedFunc(slices.Values(in.Subscriptions),
		func(a, b Subscription) int { return cmp.Compare(a.Name, b.Name) })
	in.Installed = slices.SortedFunc(slices.Values(in.Installed),
		func(a, b Installed) int { return cmp.Compare(a.CSV, b.CSV) })
	in.OperatorGroups = slices.SortedFunc(slices.Values(in.OperatorGroups),
		func(a, b OperatorGroup) int { return cmp.Compare(a.Name, b.Name) })
	return in
}

// Input is the recorded input again; view answers what was asked then.
func (r Record) Input(view View) Input {
	return Input{
		Semantics: r.Semantics, Scope: r.Scope, View: view, Installed: r.Installed, Subscriptions: r.Subscriptions,
		OperatorGroups: r.OperatorGroups, Policy: r.Policy,
	}
}
