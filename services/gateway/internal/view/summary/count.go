package summary

import (
	"maps"
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// fleet is a copy of what is counted of one tenant, as the read models had it at one moment. Nothing of it is ever
// changed in place.
type fleet struct{ namespaces []*namespace } // by cluster and name

// namespace is what is in one namespace of a cluster.
type namespace struct {
	cluster, name string
	operators     []installed
	subscriptions []wanted
}

// installed is an operator.
type installed struct {
	pkg, phase string
	drifted    bool
	// follows is the index of the first subscription that has it installed; -1 without one.
	follows int
}

// wanted is a subscription.
type wanted struct {
	pkg                       string
	catalog, catalogNamespace string // the catalog, and its namespace: "" of the hub
	// waits is when its plan begins to wait for people, in microseconds since 1970: also in the past; never without
	// one.
	waits                                 int64
	failing, upgradeAvailable, deprecated bool
}

// never is a time that does not come.
const never = int64(1<<63 - 1)

// catalogName is subscriptions.CatalogName.
func (w wanted) catalogName(cluster string) string {
	if w.catalogNamespace == "" {
		return w.catalog
	}
	return cluster + "/" + w.catalogNamespace + "/" + w.catalog
}

// place is where it lies, as subscriptions.Places says.
func (w wanted) place(n *namespace) readmodel.Place {
	return readmodel.Place{
		Cluster: n.cluster, Namespace: n.name, HasCatalog: true,
		Catalog: access.CatalogName(w.catalogNamespace, w.catalog),
	}
}

// catalogPlace is where its catalog lies, as subscriptions.CatalogPlaces says.
func (w wanted) catalogPlace(n *namespace) readmodel.Place {
	p := w.place(n)
	p.Namespace, p.OpenToAll = w.catalogNamespace, true
	if w.catalogNamespace == "" {
		p.Cluster = ""
	}
	return p
}

// sums are numbers of a part, with few phases.
type sums struct {
	model.SummaryCounts

	phases []phaseCount
	some   bool
}

type phaseCount struct {
	phase string
	n     int
}

func (s *sums) inPhase(phase string) {
	for i := range s.phases {
		if s.phases[i].phase == phase {
			s.phases[i].n++
			return
		}
	}
	s.phases = append(s.phases, phaseCount{phase, 1})
}

// counts is the sum as answers have it.
func (s *sums) counts() model.SummaryCounts {
	c := s.SummaryCounts
	c.Phases = make(map[string]int, len(s.phases))
	for _, p := range s.phases {
		c.Phases[p.phase] = p.n
	}
	return c
}

// counting is one question about a copy.
type counting struct {
	fleet    *fleet
	now      time.Time
	filter   model.SummaryFilter
	clusters map[string]bool // that a selector chooses; nil is all

	needsCatalog                       bool
	operators, subscriptions, catalogs readmodel.Sight
}

// count adds up what a caller sees, and gives it to t in the order of its parts.
func (c *counting) count(who model.Caller, t *tally) {
	c.operators = readmodel.SightOf(who, access.List, access.Operators)
	c.subscriptions = readmodel.SightOf(who, access.List, access.Subscriptions)
	c.catalogs = readmodel.SightOf(who, access.List, access.Catalogs)
	c.needsCatalog = c.filter.By == model.ByCatalog || c.filter.Catalog != ""
	switch c.filter.By {
	case model.ByPackage, model.ByCatalog:
		c.byName(t)
	default:
		c.byPlace(t)
	}
}

// byPlace counts clusters or namespaces, which lie in the order of the copy.
func (c *counting) byPlace(t *tally) {
	var part sums
	var at key
	end := func() {
		if part.some {
			t.take(at, &part)
		}
		part = sums{phases: part.phases[:0]}
	}
	one := func(string) *sums { return &part }
	for _, n := range c.fleet.namespaces {
		k := key{n.cluster}
		if c.filter.By == model.ByNamespace {
			k[1] = n.name
		}
		if k != at {
			end()
			at = k
		}
		c.add(n, one)
	}
	end()
}

// byName counts packages or catalogs.
func (c *counting) byName(t *tally) {
	parts := map[string]*sums{}
	named := func(name string) *sums {
		s := parts[name]
		if s == nil {
			s = &sums{}
			parts[name] = s
		}
		return s
	}
	for _, n := range c.fleet.namespaces {
		c.add(n, named)
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		t.take(key{name}, parts[name])
	}
}

// add counts a namespace. in is the part with a name: of a package or a catalog.
func (c *counting) add(n *namespace, in func(name string) *sums) {
	f := c.filter
	if f.Cluster != "" && f.Cluster != n.cluster || f.Namespace != "" && f.Namespace != n.name ||
		c.clusters != nil && !c.clusters[n.cluster] {
		return
	}
	if c.operators.Sees(readmodel.Place{Cluster: n.cluster, Namespace: n.name}) {
		for i := range n.operators {
			c.addOperator(n, &n.operators[i], in)
		}
	}
	for i := range n.subscriptions {
		c.addSubscription(n, &n.subscriptions[i], in)
	}
}

// part is the package or catalog that something counts for, and whether the filter chooses it.
func (c *counting) part(pkg, catalog string) (name string, chosen bool) {
	f := c.filter
	if f.Package != "" && f.Package != pkg || f.Catalog != "" && f.Catalog != catalog {
		return "", false
	}
	if f.By == model.ByCatalog {
		return catalog, true
	}
	return pkg, true
}

func (c *counting) addOperator(n *namespace, o *installed, in func(string) *sums) {
	catalog := ""
	if c.needsCatalog {
		catalog = c.followed(n, o)
	}
	name, chosen := c.part(o.pkg, catalog)
	if !chosen {
		return
	}
	s := in(name)
	s.some = true
	s.Operators++
	s.inPhase(o.phase)
	if o.phase == failed {
		s.Failing++
	}
	if o.drifted {
		s.Drifted++
	}
}

// followed is the catalog of the subscription that has an operator installed, as the SQL of that name.
func (c *counting) followed(n *namespace, o *installed) string {
	if o.follows < 0 {
		return ""
	}
	w := &n.subscriptions[o.follows]
	if !c.subscriptions.Sees(w.place(n)) {
		return ""
	}
	return c.catalogOf(n, w)
}

// catalogOf is the catalog that a subscription names, "" where the caller may not list it.
func (c *counting) catalogOf(n *namespace, w *wanted) string {
	if !c.catalogs.Sees(w.catalogPlace(n)) {
		return ""
	}
	return w.catalogName(n.cluster)
}

func (c *counting) addSubscription(n *namespace, w *wanted, in func(string) *sums) {
	if !c.subscriptions.Sees(w.place(n)) {
		return
	}
	catalog := ""
	if c.needsCatalog {
		catalog = c.catalogOf(n, w)
	}
	name, chosen := c.part(w.pkg, catalog)
	if !chosen {
		return
	}
	s := in(name)
	s.some = true
	s.Subscriptions++
	if w.waits <= c.now.UnixMicro() {
		s.RequiresApproval++
	}
	if w.failing {
		s.Failing++
	}
	if w.upgradeAvailable {
		s.UpgradeAvailable++
	}
	if w.deprecated {
		s.Deprecated++
	}
}
