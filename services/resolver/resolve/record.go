package resolve

import (
	"slices"

	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve/graph"
)

// record is the input of one partition: what was consulted, what is installed, and what was asked for. It says
// nothing of other partitions.
func (r *run) record(p *graph.Partition, reads []int32) resolution.Record {
	rec := resolution.Record{
		Semantics: r.in.Semantics, Scope: r.in.Scope, Policy: r.policy(p), OperatorGroups: r.in.OperatorGroups,
		Subscriptions: []resolution.Subscription{}, Installed: []resolution.Installed{},
		Catalogs: []resolution.Catalog{}, Reads: r.reader.Sorted(append(reads, p.Reads...)),
	}
	for _, rt := range p.Roots {
		if rt.Sub != nil {
			rec.Subscriptions = append(rec.Subscriptions, *rt.Sub)
		}
	}
	for _, n := range p.Members {
		if p.IsInstalled(n) {
			rec.Installed = append(rec.Installed, r.in.Installed[n])
		}
	}
	rec.Catalogs = r.consulted(rec.Reads)
	return rec
}

// consulted are the catalogs that reads name, or all where all were asked, without revisions; and without priorities
// where these decided nothing. A catalog that nothing in the partition asked may come, go or move.
func (r *run) consulted(reads []resolution.Read) []resolution.Catalog {
	all := slices.ContainsFunc(reads, func(q resolution.Read) bool { return q.Kind == resolution.ReadVisible })
	named := map[resolution.CatalogKey]bool{}
	for _, q := range reads {
		named[q.Catalog] = true
		if c, ok := r.reader.Named(q.Catalog); ok && q.Kind == resolution.ReadCatalog && q.Answer != "" {
			named[c.Key] = true
		}
	}
	out := []resolution.Catalog{}
	for _, k := range r.catalogs {
		k.Revision = ""
		if !all {
			k.Priority = 0
		}
		if all || named[k.Key] {
			out = append(out, k)
		}
	}
	return out
}

// policy is what concerns a partition: a bound on other packages changes nothing in it.
func (r *run) policy(p *graph.Partition) resolution.Policy {
	out := r.in.Policy
	out.Bounds = nil
	for i := range p.Bounds {
		b := &p.Bounds[i]
		concerned := func(n graph.NodeID) bool {
			return !p.IsInstalled(n) &&
				b.Concerns(p.Op(n).Package, p.CatalogOf(n))
		}
		if slices.ContainsFunc(p.Members, concerned) {
			out.Bounds = append(out.Bounds, b.Bound)
		}
	}
	return out
}
