// Package summary counts operators and subscriptions by cluster, namespace, package or catalog: in a copy in memory of
// what is counted, which follows the read models (ADR 0067), or in the read models themselves where there is none.
package summary

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// key is a part of the fleet: what the two expressions of a grouping give.
type key [2]string

func (k key) compare(other key) int { return slices.Compare(k[:], other[:]) }

// Reader answers queries about parts of the fleet.
type Reader struct {
	Pool *pg.Pool
	// Copies are what is counted in memory; nil has PostgreSQL count.
	Copies *Copies
}

// List returns the parts of the fleet in the order of their names, of which the caller sees what lists show.
func (r *Reader) List(
	ctx context.Context, who model.Caller, f model.SummaryFilter,
) (total model.SummaryCounts, items []model.Summary, next []string, err error) {
	if len(f.After) != 0 && len(f.After) != len(key{}) {
		return total, nil, nil, readmodel.ForeignCursor()
	}
	fleet, now := r.Copies.of(ctx, who.Tenant)
	t := &tally{filter: f}
	t.total.Add(model.SummaryCounts{}) // none of it is absent where nothing is there
	if fleet == nil {
		err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error { return countStored(ctx, tx, who, f, t) })
	} else {
		err = r.countCopied(ctx, who, counting{fleet: fleet, now: now, filter: f}, t)
	}
	if err != nil {
		return total, nil, nil, err
	}
	return t.total, t.items, t.next, nil
}

// countCopied counts in a copy. Which clusters a selector chooses is asked of their read model.
func (r *Reader) countCopied(ctx context.Context, who model.Caller, c counting, t *tally) error {
	if c.filter.ClusterSelector != "" {
		err := r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) (err error) {
			c.clusters, err = readmodel.ClusterNames(ctx, tx, who, c.filter.ClusterSelector)
			return err
		})
		if err != nil {
			return err
		}
	}
	c.count(who, t)
	return nil
}

// tally takes parts in their order, and keeps those of a page.
type tally struct {
	filter model.SummaryFilter
	total  model.SummaryCounts
	items  []model.Summary
	next   []string
}

func (t *tally) add(k key, c model.SummaryCounts) {
	t.total.Add(c)
	switch {
	case !t.shows(k):
	case len(t.items) < t.filter.Limit:
		t.items = append(t.items, summary(t.filter.By, k, c))
	case t.next == nil:
		t.next = last(t.filter.By, t.items)
	}
}

// take is add for sums, of which most are of other pages.
func (t *tally) take(k key, s *sums) {
	if t.shows(k) && t.next == nil {
		t.add(k, s.counts())
		return
	}
	t.total.Add(s.SummaryCounts)
	for _, p := range s.phases {
		t.total.Phases[p.phase] += p.n
	}
}

// shows says whether a part lies behind the page before.
func (t *tally) shows(k key) bool {
	return len(t.filter.After) == 0 || slices.Compare(k[:], t.filter.After) > 0
}

// last is the cursor behind the last item of a page.
func last(by string, items []model.Summary) []string {
	s := items[len(items)-1]
	switch by {
	case model.ByPackage:
		return []string{s.Package, ""}
	case model.ByCatalog:
		return []string{s.Catalog, ""}
	default:
		return []string{s.Cluster, s.Namespace}
	}
}

func summary(by string, k key, c model.SummaryCounts) model.Summary {
	s := model.Summary{SummaryCounts: c}
	switch by {
	case model.ByPackage:
		s.Package = k[0]
	case model.ByCatalog:
		s.Catalog = k[0]
	default:
		s.Cluster, s.Namespace = k[0], k[1]
	}
	return s
}
