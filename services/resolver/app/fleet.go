package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/fleet/rollout"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/fleet"
	"github.com/chandler-fleet/chandler/services/resolver/internal/catalogview"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store/fleetstore"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// fleetEvery is how often rollouts are looked at that wait for time to pass: soaking and deadlines are of minutes.
const fleetEvery = 2 * time.Second

// fleetRestLeast and fleetRestMost bound the pause after a look at fleet subscriptions. A decision reads what is known
// of all clusters, so that one for every cluster that says something would cost the square of the fleet: what comes
// within the pause is decided about together. It is fleetRestShare times as long as the look took; after a quiet time
// the first news is looked at without it.
const (
	fleetRestLeast = 100 * time.Millisecond
	fleetRestMost  = 2 * time.Second
	fleetRestShare = 3
)

// fleetController begins rollouts of fleet subscriptions, and has them go on. Each replica has one: who holds a fleet
// subscription decides about it, and the versions of streams refuse what was decided upon something older.
type fleetController struct {
	fleets *fleetstore.Fleets
	scopes *store.Scopes
	views  *catalogview.Views
	log    *slog.Logger
	now    func() time.Time
	// due is called when gates are to be evaluated.
	due func()
	// woken holds one element from when the log brought news until it is looked at.
	woken chan struct{}
}

func newFleetController(
	tables *store.Store, views *catalogview.Views, log *slog.Logger,
) *fleetController {
	return &fleetController{
		fleets: tables.Fleets, scopes: tables.Scopes, views: views, log: log, now: time.Now,
		woken: make(chan struct{}, 1),
	}
}

// wake has what is due looked at.
func (c *fleetController) wake() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

// run decides until ctx ends. Trouble is logged and tried again.
func (c *fleetController) run(ctx context.Context) error {
	t := time.NewTicker(fleetEvery)
	defer t.Stop()
	for all := true; ; {
		began := time.Now()
		if err := c.pass(ctx, all); err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "cannot look at the fleet subscriptions; trying again", "error", err)
		}
		rested := time.NewTimer(min(max(fleetRestShare*time.Since(began), fleetRestLeast), fleetRestMost))
		select {
		case <-ctx.Done():
			rested.Stop()
			return nil
		case <-rested.C:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			all = true
		case <-c.woken:
			all = false
		}
	}
}

// pass decides about everything that is due. Trouble with one fleet subscription holds up no other.
func (c *fleetController) pass(ctx context.Context, all bool) error {
	list, err := c.fleets.Due(ctx, all)
	if err != nil {
		return err
	}
	var trouble error
	for _, name := range list {
		if err := c.bringUpToDate(ctx, name); err != nil {
			trouble = errors.Join(trouble, fmt.Errorf("fleet subscription %s: %w", name.Name, err))
		}
	}
	return trouble
}

// maxFleetSteps bounds how often a fleet subscription is decided about in a row, so that others have their turn: what
// begins, opens a wave and directs its clusters takes two.
const maxFleetSteps = 4

func (c *fleetController) bringUpToDate(ctx context.Context, name fleetstore.Name) error {
	for range maxFleetSteps {
		made, err := c.fleets.Decide(ctx, name, c.decide)
		if errs.Is(err, errs.Conflict) || errs.Is(err, errs.AlreadyExists) {
			return nil // something moved on: it is due until it was looked at
		}
		if err != nil {
			return err
		}
		for _, p := range made.Rollout {
			c.log.InfoContext(ctx, "a rollout went on", "fleetSubscription", name.Name, "event", string(p.EventType()))
			if _, gates := p.(events.RolloutGatesDue); gates && c.due != nil {
				c.due()
			}
		}
		if len(made.Rollout) == 0 {
			return nil
		}
	}
	return nil
}

// decide is what is to be done about a fleet subscription now.
func (c *fleetController) decide(ctx context.Context, s fleet.State) (made fleetstore.Decision, err error) {
	if s.Superseded() {
		made.Rollout = []events.Payload{events.RolloutEnded{Outcome: string(rollout.Superseded)}}
		return made, nil
	}
	if s.Last.Phase != "" && !s.Last.Phase.Ended() {
		w := rollout.World{Now: c.now(), Seen: s.World(), Evaluated: s.Evaluated, Budget: s.Changed}
		if made.Rollout, err = rollout.Next(s.Last, w, directives(s)); err == nil {
			made.Held, err = s.HeldBack(w, made.Rollout)
		}
		return made, err
	}
	members, err := s.Members()
	if err != nil { // the gateway refuses what cannot be read
		c.log.WarnContext(ctx, "cannot read a placement", "fleetSubscription", s.Name, "error", err)
		made.Waits = fleet.WaitsForSpec
		return made, nil
	}
	places, held := s.Leave(s.Leaving(members), c.now())
	made.Held = held
	var at string
	if made.Release, at, err = c.release(ctx, s, places); err != nil || len(made.Release) > 0 || s.Deleted {
		made.Waits = at
		return made, err
	}
	if s.TakenBack() {
		return c.takeBack(ctx, s, members)
	}
	if made, err = c.begin(ctx, s, members, made); len(made.Rollout) == 0 && at != "" {
		made.Waits = at // a cluster that leaves slowly keeps no other from being changed
	}
	return made, err
}

// release says what becomes of places that are let go of. waits is a code of why some of them cannot be yet.
func (c *fleetController) release(ctx context.Context, s fleet.State, places []fleet.Place) (
	list []fleet.Release, waits string, err error,
) {
	for _, p := range places {
		var there store.Loaded
		if s.Uninstalls() {
			if there, err = c.scopes.Load(ctx, s.Tenant, resolution.Scope(p)); err != nil {
				return nil, "", err
			}
		}
		if r, now := s.Release(p, there.State); now {
			list = append(list, r)
		} else {
			waits = fleet.WaitsForPlan
		}
	}
	return list, waits, nil
}

// begin begins the rollout that the members need, if there is a target for it.
func (c *fleetController) begin(ctx context.Context, s fleet.State, members []string, made fleetstore.Decision) (
	fleetstore.Decision, error,
) {
	if len(members) == 0 {
		made.Waits = fleet.WaitsForCluster
		return made, nil
	}
	target, waits, wanted, err := c.target(ctx, s)
	if err != nil || waits != "" {
		made.Waits, made.Wanted = waits, wanted
		return made, err
	}
	started, begins, err := s.Begin(members, target)
	if err != nil {
		c.log.WarnContext(ctx, "cannot read a strategy", "fleetSubscription", s.Name, "error", err)
		made.Waits = fleet.WaitsForSpec
		return made, nil
	}
	switch {
	case begins:
		made.Rollout = []events.Payload{started}
	case s.RolledBack(target):
		made.Waits = fleet.WaitsForAnother
	}
	return made, nil
}

// takeBack begins the rollout that takes back the newest one. It needs nothing of the catalog but what an earlier
// rollout had it keep.
func (c *fleetController) takeBack(
	ctx context.Context, s fleet.State, members []string,
) (made fleetstore.Decision, err error) {
	started, _, err := s.Begin(members, events.RolloutTarget{})
	if err != nil { // the gateway refuses what leads nowhere
		c.log.WarnContext(ctx, "cannot take a rollout back", "fleetSubscription", s.Name, "error", err)
		made.Waits = fleet.WaitsForKept
		return made, nil
	}
	_, err = c.views.Document(ctx, s.Tenant, started.Target.Document)
	switch {
	case errs.Is(err, errs.NotFound):
		made.Waits = fleet.WaitsForKept
		return made, nil
	case err != nil:
		return made, err
	}
	made.Rollout = []events.Payload{started}
	return made, nil
}

// directives names attempts: the same one has the same name, whoever decides it.
func directives(s fleet.State) rollout.Directive {
	return func(cluster string, attempt int) string {
		natural := fmt.Sprintf("%s/%d/%s/%d", s.Name, s.Last.Started.Number, cluster, attempt)
		return events.Key(s.Tenant, events.KindRollout, natural).String()
	}
}

// target is what the catalog offers now for a fleet subscription. Where there is none yet, waits says why, and wanted
// what has to be fetched first.
func (c *fleetController) target(ctx context.Context, s fleet.State) (
	t events.RolloutTarget, waits string, wanted *decide.Wanted, err error,
) {
	revision, err := c.fleets.Catalog(ctx, s.Tenant, s.Spec.Catalog)
	if err != nil || revision == "" {
		return t, fleet.WaitsForCatalog, nil, err
	}
	key := resolution.CatalogKey{Name: s.Spec.Catalog}
	view := c.views.View(ctx, s.Tenant, []catalogview.Catalog{{Key: key, Subject: key.Name, Revision: revision}})
	p := view.Package(key, s.Spec.Package)
	if err := view.Err(); err != nil {
		return t, "", nil, err
	}
	bundle, channel, waits := fleet.Choose(s.Spec, p)
	if waits != "" {
		return t, waits, nil, nil
	}
	content := string(bundle.Content)
	if content == "" {
		image := resolution.BundleImage{Image: bundle.Image, Package: s.Spec.Package, Bundle: bundle.Name}
		content = string(view.Image(key, image).Content)
		if content == "" && image.Askable() {
			wanted = &decide.Wanted{
				Catalog: key, Image: image.Image, Package: image.Package, Bundle: image.Bundle,
			}
		}
	}
	if err := view.Err(); err != nil || content == "" {
		return t, fleet.WaitsForContent, wanted, err
	}
	return events.RolloutTarget{
		Package: s.Spec.Package, Channel: channel, Catalog: s.Spec.Catalog, Revision: revision,
		Document: string(p.Digest), CSV: bundle.Name, Version: bundle.VersionText(), Content: content,
	}, "", nil, nil
}
