package unit_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/services/gateway/cluster"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/preview"
)

var clusters = unit.Aggregate[cluster.State, cluster.Command]{
	Kind: events.KindCluster, Subject: func(s cluster.State) string { return s.Name },
	Decide: cluster.Decide, Evolve: unit.ByPayload(cluster.Evolve),
}

var ann = model.Caller{Tenant: events.DefaultTenant, Actor: "ann"}

func runner(t *testing.T) *unit.Runner {
	t.Helper()
	pool := pgtest.DB(t).Pool(t, "gateway")
	return &unit.Runner{
		Pool: pool, Log: eventlog.New(pool), Clock: time.Now, NewID: uuid.New, Slog: slog.New(slog.DiscardHandler),
	}
}

// decide has a cluster decide on one command.
func decide(ctx context.Context, u *unit.Work, c cluster.Command) (unit.Decision[cluster.State], error) {
	return unit.Decide(ctx, u, clusters, "harbour", cluster.State{Name: "harbour"},
		func(cluster.State) (cluster.Command, error) { return c, nil })
}

func register(t *testing.T, r *unit.Runner) {
	t.Helper()
	err := r.Run(t.Context(), ann, "test", func(ctx context.Context, u *unit.Work) error {
		_, err := decide(ctx, u, cluster.Register{Name: "harbour", Credential: "c1:00"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// label is a command that sets a label.
func label(value string) cluster.Command {
	return cluster.Configure{Labels: map[string]*string{"site": &value}}
}

// TestWriteAnswersWithThePlaceOfItsEvent: without a sequencer that is the stream and its version, also where nothing
// changed.
func TestWriteAnswersWithThePlaceOfItsEvent(t *testing.T) {
	t.Parallel()
	r := runner(t)
	register(t, r)
	for range 2 {
		out, position, err := unit.Write(t.Context(), r, ann, "test",
			func(ctx context.Context, u *unit.Work) (unit.Decision[cluster.State], error) {
				return decide(ctx, u, label("north"))
			})
		if err != nil {
			t.Fatal(err)
		}
		if want := model.StreamVersion(out.Stream, 2); out.Version != 2 || position != want {
			t.Errorf("version %d at %s, want 2 at %s", out.Version, position, want)
		}
	}
}

// TestLostRaceIsDecidedAgain: a decision on a state that somebody changed meanwhile is made again, on the new one.
func TestLostRaceIsDecidedAgain(t *testing.T) {
	t.Parallel()
	r := runner(t)
	register(t, r)
	var seen []string
	err := r.Run(t.Context(), ann, "test", func(ctx context.Context, u *unit.Work) error {
		_, err := unit.Decide(ctx, u, clusters, "harbour", cluster.State{Name: "harbour"},
			func(now cluster.State) (cluster.Command, error) {
				seen = append(seen, now.Labels["site"])
				if len(seen) == 1 { // somebody else is faster
					return label("south"), r.Run(ctx, ann, "test", func(ctx context.Context, u *unit.Work) error {
						_, err := decide(ctx, u, label("north"))
						return err
					})
				}
				return label("south"), nil
			})
		return err
	})
	if err != nil || !slices.Equal(seen, []string{"", "north"}) {
		t.Errorf("decided on %q: %v; want first on no label, then on north", seen, err)
	}
}

// TestEventsOfADecisionHaveTheirVersions: a state that remembers at which version something came about is the same
// after a decision of several events as after they are read again.
func TestEventsOfADecisionHaveTheirVersions(t *testing.T) {
	t.Parallel()
	r := runner(t)
	register(t, r)
	var versions []int64
	seen := clusters
	seen.Evolve = func(s cluster.State, e eventlog.Recorded) (cluster.State, error) {
		versions = append(versions, e.Version)
		return cluster.Evolve(s, e.Payload)
	}
	load := func(ctx context.Context, u *unit.Work) error {
		_, _, err := unit.Load(ctx, u, seen, "harbour", cluster.State{Name: "harbour"})
		return err
	}
	err := r.Run(t.Context(), ann, "test", func(ctx context.Context, u *unit.Work) error {
		c := label("north").(cluster.Configure)
		c.Settings.Drift = events.DriftReport
		_, err := unit.Decide(ctx, u, seen, "harbour", cluster.State{Name: "harbour"},
			func(cluster.State) (cluster.Command, error) { return c, nil })
		return errors.Join(err, load(ctx, u))
	})
	if want := []int64{1, 2, 3, 1, 2, 3}; err != nil || !slices.Equal(versions, want) {
		t.Errorf("versions %d: %v; want %d", versions, err, want)
	}
}

// TestConflictOfTheFieldEnds: a refusal that stays a conflict is answered after a few attempts, and nothing was
// written.
func TestConflictOfTheFieldEnds(t *testing.T) {
	t.Parallel()
	r := runner(t)
	register(t, r)
	n := 0
	err := r.Run(t.Context(), ann, "test", func(ctx context.Context, u *unit.Work) error {
		n++
		if _, err := decide(ctx, u, label("north")); err != nil {
			return err
		}
		return errs.New(errs.Conflict, "always")
	})
	if !errs.Is(err, errs.Conflict) || n < 2 || n > 10 {
		t.Errorf("%v after %d attempts", err, n)
	}
	err = r.Once(t.Context(), ann, func(u *unit.Work) error {
		state, found, err := unit.Load(t.Context(), u, clusters, "harbour", cluster.State{Name: "harbour"})
		if err == nil && (!found || state.Labels["site"] != "") {
			t.Errorf("found %v with labels %v, want it without", found, state.Labels)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRecordedUnitLeavesNothing: a preview's writes are recorded, and gone with its savepoint.
func TestRecordedUnitLeavesNothing(t *testing.T) {
	t.Parallel()
	r := runner(t)
	register(t, r)
	rec := unit.Recorder{Announced: []preview.Commitments{{Body: "first"}, {Body: "second"}}}
	err := r.Run(t.Context(), ann, "test", func(ctx context.Context, u *unit.Work) error {
		savepoint, err := u.Tx.Begin(ctx)
		if err != nil {
			return err
		}
		tried := u.Recorded(savepoint, &rec)
		if got := tried.Announced().Body; got != "first" {
			t.Errorf("before the first write %q is announced, want first", got)
		}
		if _, err := decide(ctx, tried, label("north")); err != nil {
			return err
		}
		if got := tried.Announced().Body; got != "second" {
			t.Errorf("before the second write %q is announced, want second", got)
		}
		tried.Warn("careful")
		if got := tried.Warnings(); !slices.Equal(got, []string{"careful"}) || len(u.Warnings()) > 0 {
			t.Errorf("warnings %q and %q, want careful in the recorded unit alone", got, u.Warnings())
		}
		return savepoint.Rollback(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(rec.Writes) != 1 || rec.Writes[0].Subject != "harbour" || len(rec.Writes[0].Hypotheses) != 1 ||
		rec.Writes[0].Before == "" {
		t.Errorf("recorded %+v, want one write of harbour with one event", rec.Writes)
	}
	err = r.Once(t.Context(), ann, func(u *unit.Work) error {
		state, _, err := unit.Load(t.Context(), u, clusters, "harbour", cluster.State{Name: "harbour"})
		if len(state.Labels) > 0 {
			t.Errorf("labels %v stayed", state.Labels)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAsActsForAnother: events say on whose behalf they were decided, and the unit of the caller keeps its own actor.
func TestAsActsForAnother(t *testing.T) {
	t.Parallel()
	r := runner(t)
	var actors, portals []string
	seen := clusters
	seen.Evolve = func(s cluster.State, e eventlog.Recorded) (cluster.State, error) {
		actors, portals = append(actors, e.Actor), append(portals, e.Via)
		return cluster.Evolve(s, e.Payload)
	}
	behind := model.Caller{Tenant: ann.Tenant, Actor: "portal", OnBehalfOf: "bob"}
	err := r.Run(t.Context(), behind, "test", func(ctx context.Context, u *unit.Work) error {
		_, err := decide(ctx, u.As(model.ActorConfiguration), cluster.Register{Name: "harbour", Credential: "c1:00"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = r.Run(t.Context(), ann, "test", func(ctx context.Context, u *unit.Work) error {
		_, first := decide(ctx, u.As(model.ActorConfiguration), label("south"))
		_, second := decide(ctx, u, label("north"))
		_, _, third := unit.Load(ctx, u, seen, "harbour", cluster.State{Name: "harbour"})
		return errors.Join(first, second, third)
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{model.ActorConfiguration, model.ActorConfiguration, "ann"}; !slices.Equal(actors, want) {
		t.Errorf("actors %q, want %q", actors, want)
	}
	if want := []string{"portal", "", ""}; !slices.Equal(portals, want) {
		t.Errorf("portals %q, want %q", portals, want)
	}
}
