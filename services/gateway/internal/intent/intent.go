// Package intent carries out what people and portals ask: it reads a stream, folds it, lets the
// aggregate decide, and appends what was decided together with the bodies that events only commit to,
// all in one transaction of the caller's tenant. A decision that was overtaken is made again; a
// create that lost is an exact "already exists" (DESIGN, settled details: Streams).
package intent

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/cataloghook"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/operatorhub"
	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

const (
	// decideAttempts bounds how often an overtaken decision is made again: each attempt loses to
	// somebody who succeeded, so more than a few mean that clients fight over one resource.
	decideAttempts = 4
	// positionWait bounds how long a write waits for its position; the sequencer needs some 25 ms when idle.
	positionWait = 100 * time.Millisecond
)

// Bodies stores what events commit to.
type Bodies interface {
	Commit(ctx context.Context, tx pgx.Tx, tenant, kind string, body []byte, previous string) (string, error)
	Body(ctx context.Context, q pg.Querier, tenant, commitment string) ([]byte, error)
}

// Credentials stores encrypted kubeconfigs.
type Credentials interface {
	Put(ctx context.Context, tx pgx.Tx, tenant string, cluster uuid.UUID, name string, kubeconfig []byte) (string, error)
	Erase(ctx context.Context, tx pgx.Tx, tenant string, cluster uuid.UUID) error
}

// Secrets stores encrypted credentials of catalog sources.
type Secrets interface {
	Put(ctx context.Context, tx pgx.Tx, tenant, name string, kind source.SecretKind, value []byte, now time.Time) (string, error)
	Erase(ctx context.Context, tx pgx.Tx, tenant, name string) error
	Kinds(ctx context.Context, q pg.Querier, tenant string) (map[string]source.SecretKind, error)
}

// Hooks stores the hooks of catalogs and what was pushed to them.
type Hooks interface {
	Put(ctx context.Context, tx pgx.Tx, h cataloghook.Hook) error
	Delete(ctx context.Context, tx pgx.Tx, tenant, subject string) error
	Of(ctx context.Context, q pg.Querier, tenant, subject string) ([]cataloghook.Hook, error)
	ByNonce(ctx context.Context, q pg.Querier, nonce []byte) ([]cataloghook.Hook, error)
	HookTurns
}

// HookTurns are the steps from a push to a look.
type HookTurns interface {
	Pushed(ctx context.Context, tx pgx.Tx, h cataloghook.Hook, now time.Time, delay, quiet time.Duration) error
	Due(ctx context.Context, q pg.Querier, now time.Time, limit int) ([]cataloghook.Hook, error)
	Take(ctx context.Context, tx pgx.Tx, h cataloghook.Hook, now time.Time) (bool, error)
}

// Hub stores which default catalogs are switched off. Lock is Get for those who will Put: until their
// transaction ends nobody else does.
type Hub interface {
	Lock(ctx context.Context, tx pgx.Tx, tenant string, now time.Time) (operatorhub.Hub, error)
	Get(ctx context.Context, q pg.Querier, tenant string) (operatorhub.Hub, error)
	Put(ctx context.Context, tx pgx.Tx, tenant string, hub operatorhub.Hub, now time.Time) error
}

// Tenants names every tenant.
type Tenants interface {
	List(ctx context.Context) ([]string, error)
}

// Catalogs answers what a catalog offers to a cluster, by the subject of its stream.
type Catalogs interface {
	Offer(ctx context.Context, q pg.Querier, tenant, subject, cluster, pkg string) (catalog.Offer, error)
}

// Clusters answers what was found last of a cluster; the zero value while nothing is known.
type Clusters interface {
	Observed(ctx context.Context, q pg.Querier, tenant, cluster string) (events.ClusterObserved, error)
}

// History answers what a subscription has installed, and what it had before.
type History interface {
	Past(ctx context.Context, q pg.Querier, tenant string, name subscription.Name) (model.Past, error)
}

// Service carries out intents.
type Service struct {
	Pool        *pg.Pool
	Log         *eventlog.Log
	Bodies      Bodies
	Credentials Credentials
	Catalogs    Catalogs
	Secrets     Secrets
	Hooks       Hooks
	HookKey     string // that secrets of hooks are derived from; without one there are none
	Hub         Hub
	Defaults    []model.AddCatalog // catalogs that come with the installation
	// GlobalNamespaces are those in which operators serve all namespaces unless somebody says otherwise.
	GlobalNamespaces []string
	// GlobalCatalogNamespaces are those whose catalogs a whole cluster sees unless somebody says otherwise.
	GlobalCatalogNamespaces []string
	Tenants                 Tenants
	Tokens                  Tokens
	Previews                Previews
	History                 History
	Clusters                Clusters
	Asker                   Asker
	Subscribers             Subscribers
	Now                     func() time.Time
	NewID                   func() uuid.UUID
	Slog                    *slog.Logger

	served sync.Map // tenants whose default catalogs are what the configuration says
}

// aggregate is what run needs of a pure aggregate.
type aggregate[S, C any] struct {
	kind    events.Kind
	subject func(S) string // that the stream's events carry
	decide  func(S, C) ([]events.Payload, error)
	evolve  func(S, eventlog.Recorded) (S, error)
}

// commander makes a command inside the transaction, seeing the state that it will be decided on.
type commander[S, C any] func(ctx context.Context, tx pgx.Tx, state S) (C, error)

// outcome is what run did.
type outcome[S any] struct {
	State    S
	Stream   events.StreamID
	Version  int64
	Position string
	Time     time.Time
}

// fold adapts an Evolve that needs the payload only.
func fold[S any](evolve func(S, events.Payload) (S, error)) func(S, eventlog.Recorded) (S, error) {
	return func(s S, r eventlog.Recorded) (S, error) { return evolve(s, r.Payload) }
}

// run decides on the newest state of the stream with a natural key and appends, until nobody was
// faster. initial is the state before the first event.
func run[S, C any](ctx context.Context, s *Service, who model.Caller, a aggregate[S, C], natural string, initial S,
	command commander[S, C],
) (outcome[S], error) {
	var out outcome[S]
	var appended eventlog.Appended
	err := s.transact(ctx, who, "intent "+string(a.kind), func(ctx context.Context, tx pgx.Tx) (err error) {
		out, appended, err = attempt(ctx, s, tx, who, a, natural, initial, command)
		return err
	})
	if err != nil {
		return out, err
	}
	out.Position = s.position(ctx, appended)
	return out, nil
}

// transact runs do in a transaction of the caller's tenant, and anew where somebody was faster.
func (s *Service) transact(ctx context.Context, who model.Caller, span string, do func(ctx context.Context, tx pgx.Tx) error) error {
	if u := unitOf(ctx); u != nil { // one of several, all or none of which happen
		return do(ctx, u.tx)
	}
	ctx, end := telemetry.Span(ctx, span)
	var err error
	for range decideAttempts {
		err = s.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error { return do(ctx, tx) })
		if !errs.Is(err, errs.Conflict) || ctx.Err() != nil {
			break
		}
	}
	end(err)
	return err
}

func attempt[S, C any](ctx context.Context, s *Service, tx pgx.Tx, who model.Caller, a aggregate[S, C], natural string, initial S,
	command commander[S, C],
) (outcome[S], eventlog.Appended, error) {
	out := outcome[S]{State: initial, Time: s.Now().UTC()}
	head, err := s.Log.Latest(ctx, tx, who.Tenant, a.kind, natural)
	if err != nil {
		return out, eventlog.Appended{}, err
	}
	stream, version := head.Create(), int64(0)
	if head.Exists() {
		stream, version = head.ID, head.Version
		if out.State, err = replay(ctx, s, tx, who.Tenant, a, head, initial); err != nil {
			return out, eventlog.Appended{}, err
		}
	}
	c, err := command(ctx, tx, out.State)
	if err != nil {
		return out, eventlog.Appended{}, err
	}
	payloads, err := a.decide(out.State, c)
	if err != nil {
		return out, eventlog.Appended{}, err
	}
	before := out.State
	// Where nothing is to be said, the answer names the event that said it last.
	appended := eventlog.Appended{Stream: stream, Version: version, Tenant: who.Tenant}
	if len(payloads) > 0 {
		appended, err = s.Log.Append(ctx, tx, s.meta(ctx, who, out.Time), stream, a.subject(out.State), version, payloads...)
		if err != nil {
			return out, appended, err
		}
	}
	for _, p := range payloads {
		if out.State, err = a.evolve(out.State, eventlog.Recorded{Payload: p, Envelope: events.Envelope{Time: out.Time, Actor: who.Actor}}); err != nil {
			return out, appended, err
		}
	}
	out.Stream, out.Version = appended.Stream, appended.Version
	return out, appended, note(ctx, appended, a.subject(out.State), before, payloads)
}

func replay[S, C any](ctx context.Context, s *Service, q pg.Querier, tenant string, a aggregate[S, C], head eventlog.StreamHead, initial S) (S, error) {
	state := initial
	recorded, err := s.Log.ReadStream(ctx, q, tenant, head.ID, 0)
	if err != nil {
		return state, err
	}
	for _, r := range recorded {
		// Only what the head counted: an event after it belongs to the next attempt.
		if r.Version > head.Version {
			break
		}
		if state, err = a.evolve(state, r); err != nil {
			return state, err
		}
	}
	return state, nil
}

func (s *Service) meta(ctx context.Context, who model.Caller, now time.Time) events.Meta {
	command := s.NewID()
	return events.Meta{
		Tenant: who.Tenant, Source: events.Gateway, Command: command, Correlation: command.String(),
		TraceParent: telemetry.TraceParent(ctx), Actor: who.Actor, Time: now,
	}
}

// position waits a little for the position of what was appended. The write has happened: whatever
// goes wrong now is not its failure, and the name of the version serves as well.
func (s *Service) position(ctx context.Context, a eventlog.Appended) string {
	if a.Version == 0 || unitOf(ctx) != nil { // nothing was written, or not yet
		return ""
	}
	pos, ok, err := s.Log.Wait(ctx, a, positionWait)
	if err != nil {
		s.Slog.WarnContext(ctx, "the position of a write is not known yet", "stream", a.Stream.String(), "error", err)
	}
	if err != nil || !ok {
		return model.StreamVersion(a.Stream, a.Version)
	}
	return pos.String()
}

// clusterExists refuses a cluster that is not registered. It asks the log, not a read model, so that
// a cluster can be used the moment it is registered.
func (s *Service) clusterExists(ctx context.Context, q pg.Querier, tenant, name string) error {
	head, err := s.Log.Latest(ctx, q, tenant, events.KindCluster, name)
	if err != nil {
		return err
	}
	if !head.Exists() {
		return errs.New(errs.NotFound, "no cluster %q is registered: register it before anything is placed on it", name).
			At("cluster", "cluster-registered")
	}
	return nil
}
