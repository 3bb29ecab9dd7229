// Package joins lets agents of clusters in: it answers who asks to become one with a join token, gives newer
// credentials to those that are, and tells NATS, in operator mode, of every change (ADR 0076).
//
// Whoever asks is decided on by the cluster's stream (libs/joining), under the version that was read: of two questions
// at once one is decided on, and the other one reads again. Nothing else is kept of who asks, so that a process that is
// killed anywhere leaves nothing half done: the same question is asked again, and gets the same answer. What NATS is
// told follows from installer.agents alone, under a lock on its row, so that nothing older is told after something
// newer.
package joins

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/agentconfig"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/joining"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/natsjwt"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/rpc"
	"github.com/chandler-fleet/chandler/libs/telemetry"
)

// attempts bounds how often a question is decided that loses to another event of its cluster's stream.
const attempts = 5

// namespaceJoins is the UUIDv5 namespace of the ids of what is recorded here. It is arbitrary and must never change.
var namespaceJoins = uuid.MustParse("3c1c3f7e-3d6d-5c0b-9a0e-6a5b7f0d2e91")

// Server lets agents in.
type Server struct {
	Pool     *pg.Pool
	EventLog *eventlog.Log
	Conn     *nats.Conn
	Log      *slog.Logger
	Now      func() time.Time
	// Key signs answers; Hub are the keys by which agents believe them.
	Key crypto.Signer
	Hub keys.Accepted
	// Authority signs users of NATS; nil where NATS is not in operator mode: then nobody joins.
	Authority *natsjwt.Authority
	// URL and CA are of NATS, for agents.
	URL, CA string
	// Config is what the agent of a cluster is to know.
	Config func(tenant, cluster, clusterID string) (agentconfig.Config, error)
}

// limits: a question has some ids. Who waits to be accepted asks every few seconds.
var limits = rpc.Limits{Bytes: 4 << 10, Every: time.Second, Burst: 5}

// place is the cluster that a subject names.
type place struct{ tenant, clusterID string }

// Serve answers who asks to become an agent, until ctx ends.
func (s *Server) Serve(ctx context.Context) error {
	return s.serve(ctx, protocol.RPCJoin, s.join)
}

// ServeRenewals answers agents that ask for newer credentials, until ctx ends.
func (s *Server) ServeRenewals(ctx context.Context) error {
	return s.serve(ctx, protocol.RPCRenew, s.renew)
}

func (s *Server) serve(ctx context.Context, prefix string,
	fn func(ctx context.Context, at place, raw json.RawMessage) (any, error),
) error {
	a := rpc.Answerer{Sign: protocol.HubSigns(s.Key), Limits: limits}
	return a.ServeAll(ctx, s.Conn, s.Log, prefix+".*.*", func(subject string) (rpc.Handler, bool) {
		at := strings.Split(strings.TrimPrefix(subject, prefix+"."), ".")
		return func(ctx context.Context, raw json.RawMessage) (any, error) {
			return fn(ctx, place{at[0], at[1]}, raw)
		}, len(at) == 2
	})
}

// join answers one question. Which cluster it is about says the subject, on which the holder of a token for that
// cluster alone may publish; the token's signature says so once more.
func (s *Server) join(ctx context.Context, at place, raw json.RawMessage) (any, error) {
	var q protocol.JoinQuestion
	if err := json.Unmarshal(raw, &q); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "read a request to join")
	}
	recipient, err := s.check(at, q)
	if err != nil {
		return nil, err
	}
	who := joining.Asked{
		Instance: q.Instance, Key: q.Key, ClusterUID: q.ClusterUID, KubernetesVersion: q.KubernetesVersion,
	}
	name, state, err := s.decide(ctx, at, func(tx pgx.Tx, name string, now joining.State) ([]events.Payload, error) {
		payloads, err := joining.Request(now, q.Token, who, s.Now().UTC())
		if err == nil && len(payloads) > 0 {
			err = s.refuseTwin(ctx, tx, at, name, q.ClusterUID)
		}
		return payloads, err
	})
	switch {
	case err != nil:
		return nil, err
	case state.Agent != nil && *state.Agent == who:
		return s.accepted(at, name, who, recipient)
	case state.Asked != nil && *state.Asked == who:
		return protocol.JoinAnswer{State: protocol.JoinPending}, nil
	default:
		return protocol.JoinAnswer{State: protocol.JoinRejected}, nil
	}
}

func (s *Server) check(at place, q protocol.JoinQuestion) (recipient seal.Recipient, err error) {
	if !natsconn.SignedBy(q.Token, q.Text(at.tenant, at.clusterID), q.Proof) {
		return recipient, errs.New(errs.Forbidden, "the request to join is not signed by a token for this cluster").
			At("proof", "join-token")
	}
	if err := q.Check(); err != nil {
		return recipient, err
	}
	if !natsconn.IsPublicKey(q.Key) || q.Key == q.Token {
		return recipient, errs.New(errs.Invalid, "key %.80q is no public key of a user of NATS of its own", q.Key).
			At("key", "nats-key")
	}
	recipient, err = seal.ParseRecipient(q.Recipient)
	if err != nil {
		return recipient, errs.New(errs.Invalid, "recipient: %v", err).At("recipient", "age-recipient")
	}
	return recipient, nil
}

// accepted is the answer to who is the agent.
func (s *Server) accepted(at place, name string, who joining.Asked, to seal.Recipient) (any, error) {
	config, err := s.Config(at.tenant, name, at.clusterID)
	if err != nil {
		return nil, err
	}
	text, err := config.Encode()
	if err != nil {
		return nil, err
	}
	sealed, err := to.Seal(text)
	if err != nil {
		return nil, err
	}
	token, err := s.Authority.AgentJWT(natsjwt.Agent{Tenant: at.tenant, ClusterID: at.clusterID, Key: who.Key},
		protocol.AgentJWTLife)
	return protocol.JoinAnswer{State: protocol.JoinAccepted, JWT: token, Config: sealed}, err
}

// refuseTwin refuses an API server that has an agent under another name.
func (s *Server) refuseTwin(ctx context.Context, tx pgx.Tx, at place, name, clusterUID string) error {
	var tenant, other string
	err := tx.QueryRow(ctx, `select tenant, cluster from installer.agents where cluster_id <> $1
		and $2 in (state -> 'agent' ->> 'clusterUID', state -> 'asked' ->> 'clusterUID') limit 1`,
		at.clusterID, clusterUID).Scan(&tenant, &other)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return err
	case tenant != at.tenant: // what others have is theirs to know
		return errs.New(errs.Conflict, "this API server, which asks to become cluster %q, is registered by another tenant",
			name).At("clusterUID", "duplicate-cluster")
	}
	return errs.New(errs.Conflict, "this API server, which asks to become cluster %q, is registered as cluster %q "+
		"already: remove that one first, or use a token for it", name, other).At("clusterUID", "duplicate-cluster")
}

// decide reads the stream of a cluster, has a decision made and records it.
func (s *Server) decide(ctx context.Context, at place,
	decide func(tx pgx.Tx, name string, now joining.State) ([]events.Payload, error),
) (name string, state joining.State, err error) {
	for range attempts {
		err = s.Pool.Tx(ctx, func(tx pgx.Tx) error {
			name, state, err = s.decideOnce(ctx, tx, at, decide)
			return err
		})
		if _, lost := errors.AsType[*eventlog.ConflictError](err); !lost {
			break
		}
	}
	return name, state, pg.Err(err)
}

func (s *Server) decideOnce(ctx context.Context, tx pgx.Tx, at place,
	decide func(tx pgx.Tx, name string, now joining.State) ([]events.Payload, error),
) (name string, state joining.State, err error) {
	err = tx.QueryRow(ctx, `select name from installer.clusters where tenant = $1 and cluster_id = $2 and not removed
		and credential = ''`, at.tenant, at.clusterID).Scan(&name)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", state, errs.New(errs.NotFound, "cluster %s is not registered as one that an agent serves", at.clusterID)
	}
	if err != nil {
		return "", state, err
	}
	head, err := s.EventLog.Latest(ctx, tx, at.tenant, events.KindCluster, name)
	if err != nil {
		return name, state, err
	}
	if !head.Exists() || head.ID.UUID().String() != at.clusterID {
		return name, state, errs.New(errs.NotFound, "cluster %q was removed", name)
	}
	recorded, err := s.EventLog.ReadStream(ctx, tx, at.tenant, head.ID, 0)
	if err != nil {
		return name, state, err
	}
	for _, r := range recorded {
		if r.Version <= head.Version {
			state = joining.Evolve(state, r.Payload)
		}
	}
	payloads, err := decide(tx, name, state)
	if err != nil || len(payloads) == 0 {
		return name, state, err
	}
	command, err := s.EventLog.FactCommand(ctx, tx, namespaceJoins,
		fmt.Sprintf("%s\x00%s\x00%d", at.tenant, head.ID, head.Version), payloads...)
	if err != nil {
		return name, state, err
	}
	if _, err := s.EventLog.Append(ctx, tx, events.Meta{
		Tenant: at.tenant, Source: events.Installer, Time: s.Now().UTC(), Command: command,
		TraceParent: telemetry.TraceParent(ctx),
	}, head.ID, name, head.Version, payloads...); err != nil {
		return name, state, err
	}
	for _, p := range payloads {
		state = joining.Evolve(state, p)
	}
	return name, state, nil
}
