package store

import (
	"slices"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Kinds of resolver.content_references: what the catalog schema keeps for decisions.
const (
	refContent = "content"
	refPackage = "package"
)

// referTo writes down what a holder refers to.
const referTo = `insert into resolver.content_references (tenant, kind, holder, digest)
	select $1, $2, $3, d from unnest($4::text[]) as d on conflict do nothing`

// refer notes what a plan, or the input of a decision, refers to in the catalog schema, so that its collector keeps
// it for as long as the holder is kept. It is in
// the transaction of the decision: what was decided on is in service then, and not collected.
func (w writer) refer(kind, holder string, digests []string) {
	if digests = ordered(digests); len(digests) > 0 {
		w.queue(referTo, w.l.Tenant, kind, holder, digests)
	}
}

// ordered are digests in one order for all, each once, so that two decisions never wait for each other in a ring.
func ordered(digests []string) []string {
	slices.Sort(digests)
	return slices.Compact(digests)
}

// contentsOf are the bundles that a plan installs.
func contentsOf(bundles []events.PlannedBundle) []string {
	var out []string
	for _, b := range bundles {
		if b.Content != "" {
			out = append(out, b.Content)
		}
	}
	return out
}

// packagesOf are the package documents that a decision consulted.
func packagesOf(r resolution.Record) []string {
	var out []string
	for _, read := range r.Reads {
		if read.Kind == resolution.ReadPackage && read.Answer != "" {
			out = append(out, read.Answer)
		}
	}
	return out
}
