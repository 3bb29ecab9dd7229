// Package eventlist reads the event log for the API, by position.
package eventlist

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/seconds"
)

// maxScans bounds how many parts of the log one request reads for rare events; the answer
// then says from where to go on.
const maxScans = 20

// scanBatch is how many events are read at a time where most are not wanted: about a megabyte.
const scanBatch = 1000

// selection is an event filter, made ready.
type selection struct {
	log     eventlog.Filter
	types   []events.Type // nil: all
	cluster string
	actor   string
	until   time.Time    // zero: no end
	who     model.Caller // sees what lies in the scopes of its rights
	verb    access.Verb
	all     bool // every event of the tenant
	told    bool // what reaches somebody of the events is decided by who asks, and not by rights on events
}

// selectEvents reads a filter. A type may end in ".*" and then means the whole family.
func selectEvents(who model.Caller, v access.Verb, f model.EventFilter) (selection, error) {
	s := selection{
		log:     eventlog.Filter{Tenant: who.Tenant, Subject: f.Subject, Raw: true},
		cluster: f.Cluster, actor: f.Actor, until: f.Until,
	}
	s = s.seenBy(who, v)
	for _, t := range f.Types {
		known, err := expandType(t)
		if err != nil {
			return s, err
		}
		s.types = append(s.types, known...)
	}
	s.log.Types = s.types
	if f.Stream != "" {
		id, err := events.ParseStreamID(f.Stream)
		if err != nil {
			return s, errs.New(errs.Invalid, "%s", err).At("query.stream", "stream")
		}
		s.log.Stream = &id
	}
	return s, nil
}

// seenBy says whose rights decide.
func (s selection) seenBy(who model.Caller, v access.Verb) selection {
	s.who, s.verb = who, v
	_, s.all = who.Rights.Scopes(v, access.Events)
	s.all = s.all || s.told
	return s
}

// catalogUntold is the catalog of a subscription, as far as its events tell: who may see those of some catalogs only
// sees none of them.
const catalogUntold = "\x00"

// targetOf is what an event is about:
//
//	cluster                                   the cluster
//	subscription, operator group, plan, CSV   its namespace
//	catalog                                   of the hub: that catalog of the fleet; else that of its namespace
//	access to cluster/NAME                    the stop switch of a cluster
//	everything else                           the fleet as a whole
func targetOf(e eventlog.Recorded) access.Target {
	parts := strings.SplitN(e.Subject, "/", 3)
	switch e.StreamID.Kind {
	case events.KindCluster:
		return access.Target{Cluster: e.Subject}
	case events.KindCatalog:
		if len(parts) == 3 {
			return access.CatalogTarget(parts[0], parts[1], parts[2])
		}
		return access.Target{Catalog: e.Subject}
	case events.KindAccess:
		if len(parts) == 2 && parts[0] == "cluster" {
			return access.Target{Cluster: parts[1]}
		}
		return access.Target{}
	case events.KindSubscription:
		if len(parts) == 3 {
			return access.Target{Cluster: parts[0], Namespace: parts[1], Catalog: catalogUntold}
		}
	case events.KindOperatorGroup, events.KindInstallPlan, events.KindCSV:
		if len(parts) == 3 {
			return access.Target{Cluster: parts[0], Namespace: parts[1]}
		}
	case events.KindPolicy, events.KindCatalogSecret, events.KindRetention, events.KindWebhook,
		events.KindFleetSubscription, events.KindRollout, events.KindFleetBudget: // the fleet's
	}
	return access.Target{}
}

func expandType(t string) ([]events.Type, error) {
	out := events.Expand(t)
	if len(out) == 0 {
		return nil, errs.New(errs.Invalid, "no event type %q exists; a whole family is written as subscription.*",
			t).At("query.type", "event-type")
	}
	return out, nil
}

// takes decides about an event of any tenant. Where the log has filtered before it decides what the log's own filter
// cannot, which lets types pass that this binary does not know.
func (s selection) takes(e eventlog.Recorded) bool {
	if e.Tenant != s.log.Tenant || s.log.Subject != "" && e.Subject != s.log.Subject ||
		s.log.Stream != nil && e.StreamID != *s.log.Stream {
		return false
	}
	if s.types != nil && !slices.Contains(s.types, e.Type) {
		return false
	}
	if s.actor != "" && e.Actor != s.actor && e.Via != s.actor {
		return false
	}
	if !s.all && !s.who.May(s.verb, access.Events, targetOf(e)) {
		return false
	}
	if s.cluster == "" {
		return true
	}
	first, _, _ := strings.Cut(e.Subject, "/")
	switch e.StreamID.Kind {
	case events.KindCluster:
		return e.Subject == s.cluster
	case events.KindAccess:
		return e.Subject == "cluster/"+s.cluster
	case events.KindRetention, events.KindWebhook, events.KindFleetSubscription, events.KindFleetBudget:
		return false // its subject is a service, or a name of the fleet's
	case events.KindRollout:
		return concerns(e.Payload, s.cluster)
	case events.KindCatalog: // a hub catalog's subject is its name alone
		return first == s.cluster && first != e.Subject
	default:
		return first == s.cluster
	}
}

// concerns says whether an event of a rollout is about a cluster. One about all of the rollout concerns none by itself.
func concerns(p events.Payload, cluster string) bool {
	switch v := p.(type) {
	case events.RolloutClusterDirected:
		return v.Cluster == cluster
	case events.RolloutClusterSettled:
		return v.Cluster == cluster
	case events.RolloutClusterSkipped:
		return v.Cluster == cluster
	case events.RolloutClusterRetried:
		return v.Cluster == cluster
	default:
		return false
	}
}

// ended says that an event, and with it all that follow, was recorded too late.
func (s selection) ended(e eventlog.Recorded) bool {
	return !s.until.IsZero() && !e.Recorded.Before(s.until)
}

// Reader reads the log.
type Reader struct {
	Pool *pg.Pool
	Log  *eventlog.Log
	Work pg.Querier // sees all tenants
}

// Since is the position behind which what was recorded at a time or later begins.
func (r *Reader) Since(ctx context.Context, t time.Time) (events.Position, error) {
	return r.Log.Since(ctx, r.Work, t)
}

// List returns events after a position, oldest first, and the position to go on from. An answer
// with fewer events than asked for is not the end of the log unless done is true.
func (r *Reader) List(
	ctx context.Context, who model.Caller, f model.EventFilter,
) (items []model.Event, next events.Position, done bool, err error) {
	s, err := selectEvents(who, access.List, f)
	if err != nil {
		return nil, next, false, err
	}
	list, next, done, err := r.list(ctx, s, f)
	if err != nil {
		return nil, next, false, err
	}
	items = make([]model.Event, 0, len(list))
	for _, e := range list {
		items = append(items, answer(e))
	}
	return items, next, done, nil
}

// after is the position that a reader goes on from: the start of the log where none is named.
func after(f model.EventFilter) (events.Position, error) {
	if f.After == "" {
		return events.Position{Epoch: 1}, nil
	}
	at, err := events.ParsePosition(f.After)
	if err != nil {
		err = errs.New(errs.Invalid, "%s", err).At("query.after", "position")
	}
	return at, err
}

func (r *Reader) list(
	ctx context.Context, s selection, f model.EventFilter,
) (items []eventlog.Recorded, next events.Position, done bool, err error) {
	if next, err = after(f); err != nil {
		return nil, next, false, err
	}
	batch := f.Limit
	if s.cluster != "" || s.actor != "" || !s.all {
		batch = max(batch, scanBatch)
	}
	for range maxScans {
		var recorded []eventlog.Recorded
		var head events.Position
		from := next
		if recorded, next, head, err = r.read(ctx, s.log.Tenant, from, s.log, batch); err != nil {
			return nil, next, false, err
		}
		for _, e := range recorded {
			if s.ended(e) {
				return items, from, true, nil
			}
			from = e.Position
			if !s.takes(e) {
				continue
			}
			items = append(items, e)
			if len(items) == f.Limit {
				return items, e.Position, false, nil
			}
		}
		if !next.Less(head) {
			return items, next, true, nil
		}
	}
	return items, next, false, nil
}

// read returns what the log has behind a position, where that ends, and where the log ended before it was read: what
// comes after that is not the end that was reached.
func (r *Reader) read(
	ctx context.Context, tenant string, from events.Position, f eventlog.Filter, most int,
) (recorded []eventlog.Recorded, next, head events.Position, err error) {
	err = r.Pool.TenantTx(ctx, tenant, func(tx pgx.Tx) (err error) {
		if head, err = r.Log.Head(ctx, tx); err == nil {
			recorded, next, err = r.Log.ReadAfter(ctx, tx, from, f, most)
		}
		return err
	})
	return recorded, next, head, err
}

// Head is the end of the log.
func (r *Reader) Head(ctx context.Context) (events.Position, error) { return r.Log.Head(ctx, r.Pool) }

// Changed is closed when there may be new events; it is taken before reading and waited for after.
func (r *Reader) Changed() <-chan struct{} { return r.Log.Changed() }

func answer(e eventlog.Recorded) model.Event {
	data := e.Data
	if len(data) == 0 {
		data = json.RawMessage("{}")
	}
	return model.Event{
		SpecVersion: e.SpecVersion, ID: e.ID, Source: e.Source, Type: string(e.Type), Subject: e.Subject,
		Time: seconds.Time(e.Time), Recorded: seconds.Time(e.Recorded), Sequence: e.Position.String(),
		Stream: e.Stream, StreamVersion: e.Version, Correlation: e.Correlation, Causation: e.Causation,
		TraceParent: e.TraceParent, Actor: e.Actor, Via: e.Via,
		Hash: string(e.Hash), Data: data,
	}
}
