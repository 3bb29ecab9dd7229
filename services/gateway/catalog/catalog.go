// Package catalog is the aggregate of one catalog, as far as people decide about it: added, changed,
// polled again, removed. Revisions and failures are recorded by the indexer; Evolve passes over
// them. The package is pure; a source's settings come as a commitment.
package catalog

import (
	"fmt"
	"slices"
	"strings"

	libcatalog "github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// Name identifies a catalog: a hub catalog by its name alone, one that belongs to a cluster by
// cluster, namespace and name, as the CatalogSource that it came from.
type Name struct {
	Cluster   string
	Namespace string
	Name      string
}

// Subject is the natural key: name, or cluster/namespace/name.
func (n Name) Subject() string {
	if n.Cluster == "" {
		return n.Name
	}
	return n.Cluster + "/" + n.Namespace + "/" + n.Name
}

// ParseSubject reads what Subject wrote.
func ParseSubject(s string) Name {
	if p := strings.SplitN(s, "/", 3); len(p) == 3 {
		return Name{Cluster: p[0], Namespace: p[1], Name: p[2]}
	}
	return Name{Name: s}
}

func (n Name) check(v *rule.Violations) {
	v.DNSSubdomainName("/name", n.Name)
	if (n.Cluster == "") != (n.Namespace == "") {
		v.Addf("/namespace", rule.Together,
			"a catalog of one cluster needs both cluster and namespace, a hub catalog neither")
		return
	}
	if n.Cluster != "" {
		v.DNSLabelName("/cluster", n.Cluster)
		v.DNSLabelName("/namespace", n.Namespace)
	}
}

// Spec is the intent: where the content comes from, and who sees it in which order of preference.
type Spec struct {
	SourceType string
	Settings   string // commitment of the source's settings
	Priority   int32
	Visibility events.CatalogVisibility
	// Disabled catalogs are kept and not offered (R-CFG-10).
	Disabled bool
	// Templated says that the settings hold a template of an image reference (R-CAT-92).
	Templated bool
	// Signatures is the digest of the signature policy, "" for none.
	Signatures string
}

func (s Spec) check(v *rule.Violations, n Name) {
	types := make([]string, 0, len(source.Types()))
	for _, t := range source.Types() {
		types = append(types, string(t))
	}
	v.OneOf("/source/type", s.SourceType, types...)
	if vis := s.Visibility; n.Cluster != vis.Cluster || vis.Namespace != "" && vis.Namespace != n.Namespace {
		v.Addf("/visibility", rule.OneOf,
			"a hub catalog is visible everywhere, a cluster's catalog in that cluster or in its own namespace there")
	}
}

// State is a catalog's intent so far. The zero value is a catalog that was never added.
type State struct {
	Added    bool
	Name     Name
	Spec     Spec
	Metadata events.Metadata
	// Configured says that the configuration of the installation added it, not a person: only such a catalog
	// is a default one (R-CAT-110). Evolve knows nothing of who acts; whoever folds a stream sets it.
	Configured bool
}

// Command is one of Add, Change, Refresh and Remove.
type Command interface{ catalogCommand() }

// Add offers a catalog.
type Add struct {
	Name     Name
	Spec     Spec
	Metadata events.Metadata
}

// Change replaces the whole intent.
type Change struct {
	Spec     Spec
	Metadata events.Metadata
}

// Refresh asks the indexer to poll the source now.
type Refresh struct{}

// Remove stops offering the catalog; what is installed from it stays.
type Remove struct{}

func (Add) catalogCommand()     {}
func (Change) catalogCommand()  {}
func (Refresh) catalogCommand() {}
func (Remove) catalogCommand()  {}

// Decide returns the events that the command leads to; none if it changes nothing.
func Decide(s State, c Command) ([]events.Payload, error) {
	if add, ok := c.(Add); ok {
		return decideAdd(s, add)
	}
	if !s.Added {
		return nil, errs.New(errs.NotFound, "no catalog %q is known", s.Name.Subject())
	}
	switch c := c.(type) {
	case Change:
		return decideChange(s, c)
	case Refresh:
		if s.Spec.Disabled {
			return nil, errs.New(errs.Conflict, "catalog %q is disabled, so its source is not polled: enable it first",
				s.Name.Subject())
		}
		return []events.Payload{events.CatalogRefreshRequested{}}, nil
	case Remove:
		return []events.Payload{events.CatalogRemoved{}}, nil
	default:
		return nil, fmt.Errorf("catalog: command %T is not known", c)
	}
}

func decideAdd(s State, c Add) ([]events.Payload, error) {
	if s.Added {
		return nil, errs.New(errs.AlreadyExists, "a catalog %q exists already", c.Name.Subject())
	}
	var v rule.Violations
	c.Name.check(&v)
	c.Spec.check(&v, c.Name)
	if err := v.Err(); err != nil {
		return nil, err
	}
	out := []events.Payload{events.CatalogAdded{
		Name: c.Name.Name, SourceType: c.Spec.SourceType, Spec: c.Spec.Settings,
		Priority: c.Spec.Priority, Visibility: c.Spec.Visibility, Disabled: c.Spec.Disabled,
		Templated: c.Spec.Templated, Signatures: c.Spec.Signatures,
	}}
	return noted(out, s.Metadata, c.Metadata), nil
}

// noted adds that labels or annotations are others from now on, where they are.
func noted(out []events.Payload, now, next events.Metadata) []events.Payload {
	if next.Equal(now) {
		return out
	}
	return append(out, events.CatalogMetadataChanged{Metadata: next})
}

func decideChange(s State, c Change) ([]events.Payload, error) {
	var v rule.Violations
	c.Spec.check(&v, s.Name)
	if err := v.Err(); err != nil {
		return nil, err
	}
	var out []events.Payload
	if c.Spec != s.Spec {
		out = append(out, events.CatalogChanged{
			SourceType: c.Spec.SourceType, Spec: c.Spec.Settings, Priority: c.Spec.Priority,
			Visibility: c.Spec.Visibility, Disabled: c.Spec.Disabled, Templated: c.Spec.Templated,
			Signatures: c.Spec.Signatures,
		})
	}
	return noted(out, s.Metadata, c.Metadata), nil
}

// Evolve returns the state after an event; s.Name is given by the caller, as not every event names
// the catalog. An event of another kind of stream is an error.
func Evolve(s State, p events.Payload) (State, error) {
	switch e := p.(type) {
	case events.CatalogAdded:
		s.Added = true
		s.Spec = Spec{e.SourceType, e.Spec, e.Priority, e.Visibility, e.Disabled, e.Templated, e.Signatures}
	case events.CatalogChanged:
		s.Spec = Spec{e.SourceType, e.Spec, e.Priority, e.Visibility, e.Disabled, e.Templated, e.Signatures}
	case events.CatalogMetadataChanged:
		s.Metadata = e.Metadata
	case events.CatalogRemoved:
		return State{Name: s.Name}, nil
	case events.CatalogRefreshRequested, events.CatalogRevisionPublished, events.CatalogLoadFailed,
		events.CatalogBundlesFetched:
	default:
		return s, fmt.Errorf("catalog: event %s does not belong in a catalog's stream", p.EventType())
	}
	return s, nil
}

// Offer is what a catalog has of a package, as far as a new subscription needs to know.
type Offer struct {
	Ready    bool // a revision is in service and the last poll of the source succeeded
	Package  *libcatalog.Package
	Packages []string // names, sorted, when the package is not among them
}

// Who can see a catalog of a cluster, as an intent says it.
const (
	VisibleInCluster   = "cluster"
	VisibleInNamespace = "namespace"
)

// VisibilityOf says who sees a catalog (R-CAT-85):
//
//	a catalog of the hub                                  all clusters
//	of a cluster, and the intent says cluster or namespace  that
//	of a cluster, in a global catalog namespace           the cluster
//	of a cluster, in any other namespace                  that namespace
func VisibilityOf(name Name, wanted string, globalNamespaces []string) events.CatalogVisibility {
	v := events.CatalogVisibility{Cluster: name.Cluster}
	if wanted == VisibleInNamespace || wanted == "" && !slices.Contains(globalNamespaces, name.Namespace) {
		v.Namespace = name.Namespace // of a catalog of the hub there is none
	}
	return v
}
