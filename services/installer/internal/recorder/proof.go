package recorder

import (
	"context"
	"crypto/ed25519"
	"errors"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// refused counts the reports that no registered session signed. Somebody who may write to the bus makes them.
var refused = counter("chandler.reports.refused", "reports that no registered session of their cluster signed")

func counter(name, doc string) metric.Int64Counter {
	c, err := otel.Meter("github.com/chandler-fleet/chandler/services/installer").Int64Counter(name,
		metric.WithDescription(doc))
	if err != nil {
		otel.Handle(err)
	}
	return c
}

// maxKeys bounds the keys that are remembered: two sessions each of some thousand clusters. When there are more, all
// are read again.
const maxKeys = 10_000

// Message is a report as it comes: Session and Signature are those of its headers.
type Message struct {
	Subject, Session, Signature string
	Data                        []byte
}

func messageOfBus(subject string, header nats.Header, data []byte) Message {
	return Message{
		Subject: subject, Data: data, Session: header.Get(protocol.HeaderSession),
		Signature: header.Get(protocol.HeaderReportSignature),
	}
}

// keyring has the keys of sessions. Its methods may be called side by side.
type keyring struct {
	pool *pg.Pool

	mu   sync.Mutex
	keys map[string]ed25519.PublicKey // by tenant, cluster and session: a session's key never changes
}

func newKeyring(pool *pg.Pool) *keyring {
	return &keyring{pool: pool, keys: map[string]ed25519.PublicKey{}}
}

// take puts a message into the queue. One of a session whose key is known is checked here, before it may take the place
// of another; a forged one is dropped. The key of another session is read by a worker: nothing here waits for Postgres.
//
// What comes of a cluster that is not claimed is another recorder's.
func (r *Recorder) take(m Message) {
	if !r.came(clusterOf(m.Subject)) {
		return
	}
	key := r.keyring.known(m)
	if key == nil {
		r.queue.put(item{Message: m})
		return
	}
	if err := r.keyring.verify(context.Background(), m, key); err != nil {
		r.logProblem(item{Message: m}.logKey(), err)
		return
	}
	r.queue.put(item{Message: m, proven: true})
}

// prove reports errs.Forbidden unless a registered session of the cluster that the subject names signed the message.
func (k *keyring) prove(ctx context.Context, m Message) error {
	key, err := k.key(ctx, m)
	if err == nil {
		return k.verify(ctx, m, key)
	}
	if errs.Is(err, errs.Forbidden) || errs.Is(err, errs.Invalid) {
		refused.Add(ctx, 1)
	}
	return err
}

func (k *keyring) verify(ctx context.Context, m Message, key ed25519.PublicKey) error {
	err := protocol.VerifyReport(m.Subject, m.Data, m.Signature, key)
	if err != nil {
		refused.Add(ctx, 1)
	}
	return err
}

func (k *keyring) key(ctx context.Context, m Message) (ed25519.PublicKey, error) {
	if key := k.known(m); key != nil {
		return key, nil
	}
	tenant, cluster, ok := protocol.ReporterOf(m.Subject)
	_, bad := uuid.Parse(cluster)
	if !ok || bad != nil {
		return nil, errs.New(errs.Invalid, "%.200q is not the subject of a report", m.Subject)
	}
	if _, err := uuid.Parse(m.Session); err != nil {
		return nil, errs.New(errs.Forbidden, "the report names no session: it is not signed")
	}
	var key []byte
	err := k.pool.QueryRow(ctx, `select public_key from installer.holds where tenant = $1 and cluster_id = $2
		and session = $3`, tenant, cluster, m.Session).Scan(&key)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, errs.New(errs.Forbidden, "the report is of a session that is not registered for its cluster")
	}
	if err != nil {
		return nil, pg.Err(err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.keys) >= maxKeys {
		clear(k.keys)
	}
	k.keys[keyOf(tenant, cluster, m.Session)] = key
	return key, nil
}

func (k *keyring) known(m Message) ed25519.PublicKey {
	tenant, cluster, ok := protocol.ReporterOf(m.Subject)
	if !ok {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keys[keyOf(tenant, cluster, m.Session)]
}

func keyOf(tenant, cluster, session string) string {
	return strings.Join([]string{tenant, cluster, session}, "/")
}
