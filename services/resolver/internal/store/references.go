package store

import (
	"context"
	"slices"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// Kinds of resolver.content_references: what the catalog schema keeps for decisions.
const (
	refContent = "content"
	refPackage = "package"
)

// refer notes what a decision refers to in the catalog schema, so that its collector keeps it. It is in
// the transaction of the decision: what was decided on is in service then, and not collected.
func (w writer) refer(ctx context.Context, kind string, digests []string) error {
	slices.Sort(digests) // one order for all, so that two decisions never wait for each other in a ring
	digests = slices.Compact(digests)
	if len(digests) == 0 {
		return nil
	}
	return exec(ctx, w.tx, `insert into resolver.content_references (tenant, kind, digest)
		select $1, $2, d from unnest($3::text[]) as d on conflict do nothing`, w.l.Tenant, kind, digests)
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
func packagesOf(r resolve.Record) []string {
	var out []string
	for _, read := range r.Reads {
		if read.Kind == resolve.ReadPackage && read.Answer != "" {
			out = append(out, read.Answer)
		}
	}
	return out
}
