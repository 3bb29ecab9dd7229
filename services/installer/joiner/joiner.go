// Package joiner is the spoke's side of joining (ADR 0076): with a join token a program asks the hub until it is the
// agent of its cluster, and keeps its credentials fresh from then on.
//
// What it has drawn is kept before it is used. So a program that is killed anywhere asks again as the same instance,
// with the same keys, and gets the same answer.
package joiner

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"filippo.io/age"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/agentconfig"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/natsjwt"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/renewed"
	"github.com/chandler-fleet/chandler/libs/rpc"
)

const (
	// askFirst and askLast are the pauses between two questions: a person who accepts sees it happen, and one who does
	// so the next day has not caused a thousand questions an hour.
	askFirst = 2 * time.Second
	askLast  = 30 * time.Second
	// askTimeout bounds one question.
	askTimeout = 10 * time.Second
)

// Identity is who an agent is. All of it but Instance is secret.
type Identity struct {
	Token    string `json:"token"`    // public key of the join token that it was drawn for
	Instance string `json:"instance"` // UUID
	Seed     string `json:"seed"`     // of its user of NATS; it never leaves the cluster
	Identity string `json:"identity"` // age identity, to which its configuration is encrypted
	// From the hub, once it is accepted.
	JWT    string `json:"jwt,omitempty"`
	Config string `json:"config,omitempty"` // agentconfig.Config
}

// Store keeps an Identity in the cluster. Load returns nil where there is none.
type Store interface {
	Load(ctx context.Context) ([]byte, error)
	Save(ctx context.Context, identity []byte) error
}

// Facts are what the hub is told of the cluster.
type Facts struct{ ClusterUID, KubernetesVersion string }

// Joiner joins one cluster.
type Joiner struct {
	Join  agentconfig.Join
	Store Store
	Facts Facts
	Log   *slog.Logger
	// NATS are settings of the connection beside who this is and what the document says, such as a client certificate.
	NATS natsconn.Settings
}

// Run returns who this agent is once the hub has accepted it. It waits for as long as that takes. An answer that says
// that it never will is an error: errs.Forbidden and errs.Conflict, with the hub's reason.
func (j Joiner) Run(ctx context.Context) (Identity, error) {
	own, err := j.identity(ctx)
	if err != nil || own.Config != "" {
		return own, err
	}
	hub, err := j.Join.Hub()
	if err != nil {
		return own, err
	}
	settings := j.settings()
	settings.NKeySeed, settings.JWT = j.Join.Seed, func() (string, error) { return j.Join.JWT, nil }
	options, err := settings.Options()
	if err != nil {
		return own, err
	}
	name := natsauth.JoinName(j.Join.ClusterID)
	conn, err := nats.Connect(settings.URL, append(options, nats.Name(name), nats.MaxReconnects(-1),
		nats.RetryOnFailedConnect(true), nats.IgnoreAuthErrorAbort(), nats.ReconnectWait(askFirst),
		nats.CustomInboxPrefix(natsauth.Inbox(name)))...)
	if err != nil {
		return own, errs.Wrap(errs.Invalid, err, "connect to NATS")
	}
	defer conn.Close()
	own.JWT, own.Config, err = j.ask(ctx, conn, hub, own)
	if err != nil {
		return own, err
	}
	return own, j.save(ctx, own)
}

// settings are those of NATS as the document says them.
func (j Joiner) settings() natsconn.Settings {
	s := j.NATS
	s.URL = j.Join.NATSURL
	if j.Join.NATSCA != "" {
		s.CA = renewed.Of(j.Join.NATSCA)
	}
	s.Credentials, s.NKeySeed, s.Token, s.User, s.Password = "", "", "", "", ""
	return s
}

// identity is who this agent is: as it was kept, or drawn now and kept. Another token makes it another one: whoever has
// the credentials of before cannot use it, and who was withdrawn joins anew.
func (j Joiner) identity(ctx context.Context) (own Identity, err error) {
	token, err := natsconn.PublicKey(j.Join.Seed)
	if err != nil {
		return own, errs.New(errs.Invalid, "join configuration: seed is no seed of a user of NATS")
	}
	raw, err := j.Store.Load(ctx)
	if err != nil {
		return own, err
	}
	if raw != nil {
		if err := json.Unmarshal(raw, &own); err != nil {
			return own, errs.New(errs.Internal, "who this agent is was kept, and cannot be read: %v", err)
		}
		if own.Token == token {
			return own, nil
		}
	}
	private, err := age.GenerateX25519Identity()
	if err != nil {
		return own, errs.Wrap(errs.Internal, err, "make a key")
	}
	own = Identity{Token: token, Instance: uuid.NewString(), Identity: private.String()}
	if own.Seed, err = natsconn.NewSeed(); err != nil {
		return own, err
	}
	return own, j.save(ctx, own)
}

func (j Joiner) save(ctx context.Context, own Identity) error {
	raw, err := json.Marshal(own) //nolint:gosec // it goes to where secrets are kept
	if err != nil {
		return errs.Wrap(errs.Internal, err, "encode who this agent is")
	}
	return j.Store.Save(ctx, raw)
}

// ask asks until the hub has decided.
func (j Joiner) ask(ctx context.Context, conn *nats.Conn, hub keys.Accepted, own Identity) (
	token, config string, err error,
) {
	q, open, err := j.question(own)
	if err != nil {
		return "", "", err
	}
	by := rpc.Asker{Verify: protocol.HubSigned(hub)}
	waiting := false
	for pause := askFirst; ; pause = min(2*pause, askLast) {
		var answer protocol.JoinAnswer
		asking, cancel := context.WithTimeout(ctx, askTimeout)
		err := by.Ask(asking, conn, protocol.RPCJoinSubject(j.Join.Tenant, j.Join.ClusterID), q, &answer)
		cancel()
		switch {
		case errs.Is(err, errs.Forbidden), errs.Is(err, errs.Conflict), errs.Is(err, errs.Invalid):
			return "", "", err
		case err != nil:
			j.Log.WarnContext(ctx, "the hub does not answer the request to join; asking again", "error", err)
		case answer.State == protocol.JoinAccepted:
			j.Log.InfoContext(ctx, "the hub has accepted this agent", "cluster", j.Join.Cluster, "instance",
				own.Instance)
			text, err := open.Open(answer.Config, agentconfig.MaxBytes)
			if err != nil {
				return "", "", err
			}
			return answer.JWT, string(text), j.check(text)
		case answer.State == protocol.JoinRejected:
			return "", "", errs.New(errs.Forbidden, "the hub has rejected this agent, instance %s of cluster %q: another "+
				"join token is needed", own.Instance, j.Join.Cluster)
		case !waiting:
			waiting = true
			j.Log.InfoContext(ctx, "somebody has to accept this agent (chandler cluster accept)", "cluster", j.Join.Cluster,
				"instance", own.Instance)
		}
		select {
		case <-ctx.Done():
			return "", "", errs.Wrap(errs.Unavailable, context.Cause(ctx), "join cluster %q", j.Join.Cluster)
		case <-time.After(pause):
		}
	}
}

// check refuses a configuration that is of another cluster.
func (j Joiner) check(text []byte) error {
	c, err := agentconfig.Parse(text)
	if err == nil && (c.Tenant != j.Join.Tenant || c.ClusterID != j.Join.ClusterID) {
		err = errs.New(errs.Internal, "the hub answers with the configuration of another cluster, %s", c.ClusterID)
	}
	return err
}

func (j Joiner) question(own Identity) (q protocol.JoinQuestion, open seal.Identities, err error) {
	q = protocol.JoinQuestion{
		Token: own.Token, Instance: own.Instance, ClusterUID: j.Facts.ClusterUID,
		KubernetesVersion: j.Facts.KubernetesVersion,
	}
	if q.Key, err = natsconn.PublicKey(own.Seed); err != nil {
		return q, nil, err
	}
	private, err := age.ParseX25519Identity(own.Identity)
	if err != nil {
		return q, nil, errs.New(errs.Internal, "who this agent is was kept, and has no age identity")
	}
	identity, err := seal.Of(private)
	if err != nil {
		return q, nil, err
	}
	q.Recipient = identity.Recipient.String()
	q.Proof, err = natsconn.SignWith(j.Join.Seed, q.Text(j.Join.Tenant, j.Join.ClusterID))
	return q, seal.Identities{identity}, err
}

// Credentials are what an agent shows to NATS. Their JWT follows the one before at half of its life.
type Credentials struct {
	joiner  Joiner
	process string

	mu  sync.Mutex
	own Identity
}

// NewCredentials are those of an agent that has joined, for this process.
func (j Joiner) NewCredentials(own Identity) *Credentials {
	return &Credentials{joiner: j, own: own, process: uuid.NewString()}
}

// Settings are those of a connection to NATS, which takes the newest JWT whenever it is made.
func (c *Credentials) Settings() natsconn.Settings {
	s := c.joiner.settings()
	s.NKeySeed, s.JWT = c.own.Seed, func() (string, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.own.JWT, nil
	}
	return s
}

// checkIn is how often an agent shows that it lives, so that a second one with the same credentials is noticed.
const checkIn = 5 * time.Minute

// Keep asks for the next JWT at half of the life of the present one, and shows that this process lives, until ctx ends.
// What the hub says on a connection of the agent that has been withdrawn is an error.
func (c *Credentials) Keep(ctx context.Context, conn *nats.Conn, hub keys.Accepted) error {
	by := rpc.Asker{Verify: protocol.HubSigned(hub)}
	for {
		err := c.renew(ctx, conn, by)
		pause := checkIn
		switch {
		case errs.Is(err, errs.Forbidden):
			return err
		case err != nil && ctx.Err() == nil:
			pause = askLast
			c.joiner.Log.WarnContext(ctx, "newer credentials of NATS cannot be had; the present ones are used until they end",
				"error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// renew asks once. The JWT of the answer takes the place of the present one where that has lived half of its life.
func (c *Credentials) renew(ctx context.Context, conn *nats.Conn, by rpc.Asker) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var answer protocol.RenewAnswer
	subject := protocol.RPCRenewSubject(c.joiner.Join.Tenant, c.joiner.Join.ClusterID)
	if err := by.Ask(ctx, conn, subject, protocol.RenewQuestion{Process: c.process}, &answer); err != nil {
		return err
	}
	ends, err := natsjwt.Ends(answer.JWT)
	if err != nil {
		return err
	}
	c.mu.Lock()
	before, err := natsjwt.Ends(c.own.JWT)
	if err == nil && ends.Sub(before) < protocol.AgentJWTLife/2 {
		c.mu.Unlock()
		return nil
	}
	c.own.JWT = answer.JWT
	own := c.own
	c.mu.Unlock()
	return c.joiner.save(ctx, own)
}
