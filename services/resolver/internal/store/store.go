// Package store keeps the resolver's tables: what the log says of intents and facts (Apply), the state of
// one scope as a decision needs it (Load), and the decisions themselves (Write). Rows that a decision
// changes are changed in its own transaction, so that the next decision need not wait for the log.
package store

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

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

// Store is the resolver's schema.
type Store struct {
	log   *eventlog.Log
	pool  *pg.Pool
	marks Marker
	apis  APIs
	now   func() time.Time
	pack  *zstd.Encoder // for EncodeAll alone, which may be called at once
	own   ownEvents
	// handlers fold events, by type.
	handlers map[events.Type]handler
}

// New returns the store on a pool of the resolver's role. now is the clock of decisions.
func New(pool *pg.Pool, log *eventlog.Log, marks Marker, apis APIs, now func() time.Time) *Store {
	pack, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		panic("zstd options are constants: " + err.Error())
	}
	return &Store{log: log, pool: pool, marks: marks, apis: apis, now: now, pack: pack, handlers: handlers()}
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
