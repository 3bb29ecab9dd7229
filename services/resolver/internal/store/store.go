// Package store keeps the resolver's tables: what the log says of intents and facts (Projection), the state of
// one scope as a decision needs it (Scopes), and the decisions themselves (Decisions). Rows that a decision
// changes are changed in its own transaction, so that the next decision need not wait for the log.
package store

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store/fleetstore"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Consumer is the key of the checkpoint of these tables.
const Consumer = "resolver.scopes"

// DirtyTable holds the scopes to be resolved.
const DirtyTable = "resolver.dirty"

// Marker makes scopes dirty when the transaction commits; *bus.Lanes is one.
type Marker interface {
	Mark(ctx context.Context, tx pgx.Tx, lane bus.Lane, scopes ...bus.Scope) error
}

// APIs finds which APIs package documents provide, storing what had to be found out.
type APIs interface {
	Of(ctx context.Context, tx pgx.Tx, tenant string, digests []string) ([]string, error)
}

// Store is the resolver's schema: one type for each purpose. Those that write in the transaction of somebody else take
// it as an argument; the others make their own.
type Store struct {
	Projection *Projection
	Scopes     *Scopes
	Decisions  *Decisions
	Documents  *Documents
	History    *History
	Hypotheses *Hypotheses
	Previews   *Previews
	Samples    *NightlySamples
	Collector  *Collector
	Renderings *Renderings
	Fleets     *fleetstore.Fleets
}

// New returns the store on a pool of the resolver's role. now is the clock of decisions.
func New(pool *pg.Pool, log *eventlog.Log, marks Marker, apis APIs, now func() time.Time, keys bodies.Keys) *Store {
	own := &ownEvents{}
	return &Store{
		Projection: newProjection(pool, log, marks, apis, own),
		Scopes:     &Scopes{pool: pool},
		Decisions:  newDecisions(pool, log, own, now),
		Documents:  &Documents{pool: pool, bodies: keys},
		History:    &History{pool: pool, log: log},
		Hypotheses: &Hypotheses{pool: pool, apis: apis},
		Previews:   &Previews{pool: pool, now: now},
		Samples:    &NightlySamples{pool: pool, marks: marks},
		Collector:  &Collector{pool: pool, log: log},
		Renderings: &Renderings{pool: pool, marks: marks},
		Fleets: fleetstore.New(pool, log, now, fleetstore.Surroundings{
			Consumer: Consumer, Refer: referTo, Content: refContent, Package: refPackage,
		}),
	}
}

func exec(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	_, err := tx.Exec(ctx, sql, args...)
	return pg.Err(err)
}

// splitSubject takes "cluster/namespace/name" apart.
func splitSubject(subject string) (cluster, namespace, name string, err error) {
	parts := strings.Split(subject, "/")
	if len(parts) != 3 {
		return "", "", "", errs.New(errs.Internal, "subject %q is not cluster/namespace/name", subject)
	}
	return parts[0], parts[1], parts[2], nil
}

// catalogKey is how a scope names a catalog of this subject: name, or cluster/namespace/name.
func catalogKey(subject string) resolution.CatalogKey {
	if _, namespace, name, err := splitSubject(subject); err == nil {
		return resolution.CatalogKey{Name: name, Namespace: namespace}
	}
	return resolution.CatalogKey{Name: subject}
}

// catalogSubject is the other way round, for a scope of a cluster.
func catalogSubject(cluster string, k resolution.CatalogKey) string {
	if k.Namespace == "" {
		return k.Name
	}
	return cluster + "/" + k.Namespace + "/" + k.Name
}

// encode makes JSON for a jsonb column. PostgreSQL takes no NUL there, nor in text: catalogs are made by
// others, and one with such a name must not hold up a scope.
func encode(v any) (json.RawMessage, error) {
	b, err := json.Marshal(v)
	return bytes.ReplaceAll(b, []byte(`\u0000`), []byte(`\ufffd`)), errs.Wrap(errs.Internal, err, "encode %T", v)
}

// storable is a text for a column: of what others have made, with what PostgreSQL does not take replaced.
func storable(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\ufffd"), "\ufffd")
}

// scopeOf names the scope of an event as dirty because of it.
func scopeOf(e eventlog.Recorded, cluster, namespace string) bus.Scope {
	return bus.Scope{Tenant: e.Tenant, Cluster: cluster, Namespace: namespace, Cause: e.ID, TraceParent: e.TraceParent}
}
