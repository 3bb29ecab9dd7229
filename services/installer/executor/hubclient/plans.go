package hubclient

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// maxPlansBytes bounds one ScopePlans message: NATS' default limit on a message.
const maxPlansBytes = 1 << 20

// parallelGets is how many last values are asked for at a time; latency is what costs, not the server.
const parallelGets = 8

// Hub speaks for one cluster of one tenant.
type Hub struct {
	js      jetstream.JetStream
	names   func(kind string) string // of streams
	tenant  string
	cluster string // id
	key     keys.Accepted
	session *protocol.Session
}

// New returns the hub's adapter for a cluster of an installation. Only messages that are signed with a key that is
// accepted are read; what is written the session signs.
func New(js jetstream.JetStream, installation, tenant, clusterID string, key keys.Accepted,
	session *protocol.Session,
) *Hub {
	names := func(kind string) string { return protocol.StreamName(installation, kind) }
	return &Hub{js: js, names: names, tenant: tenant, cluster: clusterID, key: key, session: session}
}

// Plans reads what is wanted of every scope of the cluster now. A stream that is missing is
// errs.Unavailable: the caller keeps what it knows and asks again. A message that cannot be read is left out
// and reported to refused, one at a time: it says nothing about the other scopes.
func (h *Hub) Plans(ctx context.Context, refused func(error)) ([]protocol.ScopePlans, error) {
	filter := protocol.PlansFilter(h.tenant, h.cluster)
	stream, err := h.js.Stream(ctx, h.names(protocol.StreamPlans))
	if err != nil {
		return nil, away(err, protocol.StreamPlans)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, away(err, protocol.StreamPlans)
	}
	var mu sync.Mutex
	var out []protocol.ScopePlans
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelGets)
	for subject := range info.State.Subjects {
		g.Go(func() error {
			m, err := stream.GetLastMsgForSubject(ctx, subject)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				return nil // it went between the list and the read
			}
			if err != nil {
				return away(err, protocol.StreamPlans)
			}
			p, err := h.decode(subject, m.Header, m.Data)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				refused(err)
				return nil
			}
			out = append(out, p)
			return nil
		})
	}
	return out, g.Wait()
}

func (h *Hub) decode(subject string, header nats.Header, data []byte) (protocol.ScopePlans, error) {
	var p protocol.ScopePlans
	if len(data) > maxPlansBytes {
		return p, errs.New(errs.TooLarge, "message on %s has %d bytes, more than %d", subject, len(data), maxPlansBytes)
	}
	if err := protocol.VerifyMessage(subject, data, header.Get(protocol.HeaderSignature), h.key); err != nil {
		return p, err
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return p, errs.New(errs.Invalid, "message on %s: %v", subject, err)
	}
	if p.Scope.Tenant != h.tenant || p.Scope.ClusterID != h.cluster || protocol.PlansSubject(p.Scope) != subject {
		return p, errs.New(errs.Invalid, "message on %s is about tenant %s, cluster %s, namespace %s",
			subject, p.Scope.Tenant, p.Scope.ClusterID, p.Scope.Namespace)
	}
	return p, nil
}

// Follow calls news for every ScopePlans that is published until the returned function is called,
// and refused for a message that cannot be read. News may be lost; Plans is what holds.
func (h *Hub) Follow(news func(protocol.ScopePlans), refused func(error)) (stop func() error, err error) {
	sub, err := h.js.Conn().Subscribe(protocol.PlansFilter(h.tenant, h.cluster), func(m *nats.Msg) {
		p, err := h.decode(m.Subject, m.Header, m.Data)
		if err != nil {
			refused(err)
			return
		}
		news(p)
	})
	if err != nil {
		return nil, errs.Wrap(errs.Unavailable, err, "subscribe to plans")
	}
	return sub.Unsubscribe, nil
}

func away(err error, stream string) error {
	if err == nil {
		return nil
	}
	return errs.Wrap(errs.Unavailable, err, "stream %s", stream)
}
