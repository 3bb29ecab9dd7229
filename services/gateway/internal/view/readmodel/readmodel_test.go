package readmodel_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
)

// TestWhere: conditions and arguments stay together, however they are added, and a copy does not change its original.
func TestWhere(t *testing.T) {
	t.Parallel()
	w := readmodel.Tenant("c.tenant", "default")
	w.Equal("c.state", "Ready")
	w.Equal("c.reason", "")
	if err := w.Label("c.labels", "site=north"); err != nil {
		t.Fatal(err)
	}
	next := w.Clone()
	if err := next.After([]string{"harbour", "ops"}, "c.cluster", "c.namespace"); err != nil {
		t.Fatal(err)
	}
	if got, want := w.String(), " where c.tenant = $1 and c.state = $2 and c.labels @> $3::jsonb"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := next.String(), w.String()+" and (c.cluster, c.namespace) > ($4, $5)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if diff := cmp.Diff([]any{"default", "Ready", `{"site":"north"}`, "harbour", "ops"}, next.Args()); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if err := w.After([]string{"harbour"}, "c.cluster", "c.namespace"); !errs.Is(err, errs.Invalid) {
		t.Errorf("the cursor of another list: %v", err)
	}
}

// TestSelectors: label selectors are read as Kubernetes reads them; texts of a caller are arguments, never SQL.
func TestSelectors(t *testing.T) {
	t.Parallel()
	for selector, want := range map[string]string{
		"":                 "",
		"site=north":       " and l @> $2::jsonb",
		"site==north":      " and l @> $2::jsonb",
		"site in (a)":      " and l @> $2::jsonb",
		"site in (a,b)":    " and (l ->> $2::text) = any ($3::text[])",
		"site":             " and jsonb_exists(l, $2)",
		"!site":            " and not jsonb_exists(l, $2)",
		"site!=north":      " and not coalesce((l ->> $2::text) = any ($3::text[]), false)",
		"site notin (a,b)": " and not coalesce((l ->> $2::text) = any ($3::text[]), false)",
		"tier>2": " and case when (l ->> $2::text) ~ '^-{0,1}[0-9]{1,18}$' then (l ->> $3::text)::bigint > $4 " +
			"else false end",
		"tier<2,!zone": " and case when (l ->> $2::text) ~ '^-{0,1}[0-9]{1,18}$' then (l ->> $3::text)::bigint < $4 " +
			"else false end and not jsonb_exists(l, $5)",
	} {
		w := readmodel.Tenant("t", "default")
		if err := w.Label("l", selector); err != nil || w.String() != " where t = $1"+want {
			t.Errorf("%q: %s, %v", selector, w.String(), err)
		}
	}
	for _, wrong := range []string{
		"a b", "=", "a in b", "-a", "a=" + strings.Repeat("x", 64), "a>b", "a;drop", "a in (b",
		strings.Repeat("a,", 40) + "a",
	} {
		w := readmodel.Tenant("t", "default")
		if err := w.Label("l", wrong); !errs.Is(err, errs.Invalid) {
			t.Errorf("%.40q: %s, %v", wrong, w.String(), err)
		}
	}
}

// TestHandlersAreTheListOfTypes: a projection reads exactly the types that it has a handler for, and an event that it
// asked for and cannot fold is an error, which parks the stream.
func TestHandlersAreTheListOfTypes(t *testing.T) {
	t.Parallel()
	var folded []string
	p := readmodel.Projection("gateway.test", 1, []string{"clusters"},
		readmodel.On(func(_ context.Context, f readmodel.Fold, p events.ClusterRegistered) error {
			folded = append(folded, f.Subject+" "+p.Name)
			return nil
		}),
		readmodel.On(func(context.Context, readmodel.Fold, events.ClusterRemoved) error { return nil }))
	if want := []events.Type{"cluster.registered.v1", "cluster.removed.v1"}; !slices.Equal(p.Types, want) {
		t.Errorf("types %v, want %v", p.Types, want)
	}
	apply := func(payload events.Payload) error {
		e := eventlog.Recorded{
			Payload: payload, Envelope: events.Envelope{Type: payload.EventType(), Subject: "harbour"},
		}
		return p.Apply(t.Context(), nil, projection.Tables{}, e)
	}
	if err := apply(events.ClusterRegistered{Name: "h"}); err != nil || !slices.Equal(folded, []string{"harbour h"}) {
		t.Errorf("folded %q, %v", folded, err)
	}
	if err := apply(events.ClusterConfigured{}); !errs.Is(err, errs.Internal) {
		t.Errorf("an event without a handler: %v", err)
	}
}

// TestOnAllReadsEveryTypeOfAKind: a read model that folds with the aggregate needs no change for a new event of it.
func TestOnAllReadsEveryTypeOfAKind(t *testing.T) {
	t.Parallel()
	p := readmodel.Projection("gateway.test", 1, nil,
		readmodel.OnAll(events.KindInstallPlan, func(context.Context, readmodel.Fold) error { return nil })...)
	for _, d := range events.All() {
		if got, want := slices.Contains(p.Types, d.Type), d.Kind == events.KindInstallPlan; got != want {
			t.Errorf("%s is read: %v, want %v", d.Type, got, want)
		}
	}
}
