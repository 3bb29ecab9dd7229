package summary

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/subscriptions"
)

// parts are those of a fleet that are read again.
type parts struct {
	whole      bool
	clusters   map[string]bool
	namespaces map[[2]string]bool
}

func (p *parts) none() bool { return !p.whole && len(p.clusters)+len(p.namespaces) == 0 }

// holds says whether a namespace is read again.
func (p *parts) holds(n *namespace) bool {
	return p.whole || p.clusters[n.cluster] || p.namespaces[[2]string{n.cluster, n.name}]
}

// touch adds what an event may change of what is counted:
//
//	CSV, subscription, install plan           its namespace
//	cluster                                   the cluster, whose version of Kubernetes says what is deprecated
//	catalog                                   its cluster; one of the hub the whole
//	one that this binary does not know        the whole
func (p *parts) touch(e eventlog.Recorded) {
	d, known := events.Lookup(e.Type)
	if !known {
		p.whole = true
		return
	}
	subject := strings.SplitN(e.Subject, "/", subjectParts)
	switch {
	case d.Kind == events.KindCluster:
		p.clusters[e.Subject] = true
	case d.Kind == events.KindCatalog && len(subject) < subjectParts:
		// Asking for a look at a catalog changes nothing that is counted, and is asked all the time.
		p.whole = p.whole || e.Type != events.CatalogRefreshRequested{}.EventType()
	case d.Kind == events.KindCatalog:
		p.clusters[subject[0]] = true
	case d.Kind != events.KindCSV && d.Kind != events.KindSubscription && d.Kind != events.KindInstallPlan:
	case len(subject) < subjectParts:
		p.whole = true
	default:
		p.namespaces[[2]string{subject[0], subject[1]}] = true
	}
}

// subjectParts are those of a subject cluster/namespace/name.
const subjectParts = 3

// replace takes over what was read of parts. The fleet before is left as it is, for those who still count in it.
func (f *follower) replace(changed *parts, rows []*namespace) {
	byName := func(a, b *namespace) int {
		return cmp.Or(strings.Compare(a.cluster, b.cluster), strings.Compare(a.name, b.name))
	}
	slices.SortFunc(rows, byName)
	next := make([]*namespace, 0, len(f.fleet.namespaces)+len(rows))
	for _, n := range f.fleet.namespaces {
		if changed.holds(n) {
			continue
		}
		for len(rows) > 0 && byName(rows[0], n) < 0 {
			next, rows = append(next, rows[0]), rows[1:]
		}
		next = append(next, n)
	}
	next = append(next, rows...)
	f.fleet = &fleet{next}
}

// where chooses the rows of parts, and others of the same clusters: a condition for each column is what the key of the
// table answers.
func (p *parts) where(tenant, alias string) readmodel.Where {
	w := readmodel.Tenant(alias+".tenant", tenant)
	if p.whole {
		return w
	}
	inClusters, inNamespaces := maps.Clone(p.clusters), map[string]bool{}
	for n := range p.namespaces {
		inClusters[n[0]], inNamespaces[n[1]] = true, true
	}
	w.Add(alias+".cluster = any (?)", slices.Collect(maps.Keys(inClusters)))
	if len(p.clusters) == 0 {
		w.Add(alias+".namespace = any (?)", slices.Collect(maps.Keys(inNamespaces)))
	}
	return w
}

// reading are namespaces that are being read. Texts that many rows have are kept once.
type reading struct {
	texts map[string]string
	all   map[[2]string]*namespace
}

func (r *reading) text(s string) string {
	if kept, there := r.texts[s]; there {
		return kept
	}
	r.texts[s] = s
	return s
}

func (r *reading) in(cluster, name string) *namespace {
	k := [2]string{cluster, name}
	n := r.all[k]
	if n == nil {
		n = &namespace{cluster: r.text(cluster), name: r.text(name)}
		r.all[k] = n
	}
	return n
}

// readNamespaces reads what is counted of parts, in one statement for each of the two read models.
func readNamespaces(ctx context.Context, tx pgx.Tx, tenant string, p *parts) ([]*namespace, error) {
	r := &reading{texts: map[string]string{}, all: map[[2]string]*namespace{}}
	having, err := r.readSubscriptions(ctx, tx, p.where(tenant, "s"))
	if err == nil {
		err = r.readOperators(ctx, tx, p.where(tenant, "o"), having)
	}
	list := make([]*namespace, 0, len(r.all))
	for _, n := range r.all {
		if p.holds(n) {
			list = append(list, n)
		}
	}
	return list, err
}

// readSubscriptions returns, by cluster, namespace and operator, which subscription is the first that has it installed.
func (r *reading) readSubscriptions(ctx context.Context, tx pgx.Tx, w readmodel.Where) (map[[3]string]int, error) {
	rows, err := w.Query(ctx, tx, `select s.cluster, s.namespace, s.package, s.catalog, s.catalog_namespace,
		s.installed_csv, `+subscriptions.WaitsSince+`, `+doesNotGoOnOnly+`, `+subscriptions.UpgradeAvailable+`, `+
		subscriptions.Deprecated+`
		from subscriptions s left join clusters k on k.tenant = s.tenant and k.name = s.cluster`,
		"order by s.cluster, s.namespace, s.name")
	if err != nil {
		return nil, err
	}
	having := map[[3]string]int{}
	var cluster, name, csv string
	var waits *int64
	var s wanted
	_, err = pgx.ForEachRow(rows, []any{
		&cluster, &name, &s.pkg, &s.catalog, &s.catalogNamespace, &csv, &waits, &s.failing, &s.upgradeAvailable,
		&s.deprecated,
	}, func() error {
		n := r.in(cluster, name)
		one := s
		one.pkg, one.catalog, one.catalogNamespace = r.text(s.pkg), r.text(s.catalog), r.text(s.catalogNamespace)
		one.waits = never
		if waits != nil {
			one.waits = *waits
		}
		if k := ([3]string{n.cluster, n.name, csv}); csv != "" {
			if _, there := having[k]; !there {
				having[k] = len(n.subscriptions)
			}
		}
		n.subscriptions = append(n.subscriptions, one)
		return nil
	})
	return having, pg.Err(err)
}

func (r *reading) readOperators(ctx context.Context, tx pgx.Tx, w readmodel.Where, having map[[3]string]int) error {
	rows, err := w.Query(ctx, tx, `select o.cluster, o.namespace, o.name, o.package, o.phase, o.drifted > 0
		from operators o`, "")
	if err != nil {
		return err
	}
	var cluster, name, csv string
	var o installed
	_, err = pgx.ForEachRow(rows, []any{&cluster, &name, &csv, &o.pkg, &o.phase, &o.drifted}, func() error {
		n := r.in(cluster, name)
		one := o
		one.pkg, one.phase, one.follows = r.text(o.pkg), r.text(o.phase), -1
		if i, there := having[[3]string{n.cluster, n.name, csv}]; there {
			one.follows = i
		}
		n.operators = append(n.operators, one)
		return nil
	})
	return pg.Err(err)
}
