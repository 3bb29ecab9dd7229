package hub

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

const (
	// workers publish scopes: each waits mostly for Postgres and NATS.
	workers = 4
	// publishTimeout bounds one publish; the scope is tried again.
	publishTimeout = 5 * time.Second
	// messageSlack is kept free of the server's limit for headers and subject.
	messageSlack = 4 << 10
)

// Work publishes dirty scopes until ctx ends.
func (h *Hub) Work(ctx context.Context) error { return h.lanes.Work(ctx, workers, h.publish) }

// publish brings one scope's message up to date.
func (h *Hub) publish(ctx context.Context, s bus.Scope) error {
	if s.Namespace == "" {
		return h.clear(ctx, s)
	}
	cluster, ok, err := h.clusterID(ctx, s)
	if err != nil || !ok {
		return err
	}
	// Taken before the tables are read: a worker that was paused behind this and is overtaken is refused.
	was, err := h.lastMessage(ctx, protocol.Scope{Tenant: s.Tenant, ClusterID: cluster, Namespace: s.Namespace})
	if err != nil {
		return err
	}
	w, ok, err := h.read(ctx, s)
	if err != nil || !ok {
		return err
	}
	if w.cluster.String() != cluster {
		return errs.New(errs.Conflict, "cluster %s was registered again meanwhile", s.Cluster)
	}
	h.reportWithheld(ctx, s, w.withheld)
	if err := h.ensureContents(ctx, &w); err != nil {
		return err
	}
	sum, err := fingerprint(w.message)
	if err != nil {
		return errs.Wrap(errs.Internal, err, "fingerprint of %s/%s", s.Cluster, s.Namespace)
	}
	signed := h.signedSum(sum)
	if w.message.Nothing() && w.renew.IsZero() {
		if done, err := h.retire(ctx, &w, was, signed); err != nil || done {
			return err
		}
	}
	current, err := h.current(ctx, w, was, signed)
	if err != nil || current {
		return err
	}
	if err := saveGrants(ctx, h.c.Pool, w); err != nil {
		return err
	}
	sequence, err := h.send(ctx, &w, was.sequence)
	if err != nil {
		return err
	}
	// Killed here, the row tells of the message before: whatever is wanted then is published again.
	return h.savePublished(ctx, w, was, signed, sequence)
}

// signedSum is what a message says, and the key that it is signed with: a message that another key signed is not the
// same, so that every message is published again after a new key has become active.
func (h *Hub) signedSum(sum digest.Digest) string { return h.keyID + "/" + string(sum) }

// saveGrants writes down until when the plans of a message may begin, before anybody can see it: a start is believed by
// what is written here alone. Killed behind this, a grant is written down that nobody has; the next message has one.
func saveGrants(ctx context.Context, pool *pg.Pool, w wanted) error {
	var plans []string
	var until []time.Time
	for _, p := range w.message.Plans {
		if !w.begun[p.ID] {
			plans, until = append(plans, p.ID), append(until, p.Grant.Expires)
		}
	}
	if len(plans) == 0 {
		return nil
	}
	_, err := pool.Exec(ctx, `insert into installer.grants as g (tenant, plan, cluster_id, until)
		select $1, p, $2, u from unnest($3::uuid[], $4::timestamptz[]) as x (p, u)
		on conflict (tenant, plan) do update set until = greatest(g.until, excluded.until)`,
		w.message.Scope.Tenant, w.cluster, plans, until)
	return pg.Err(err)
}

// clusterID is the id under which a cluster is registered now.
func (h *Hub) clusterID(ctx context.Context, s bus.Scope) (id string, ok bool, err error) {
	err = h.c.Pool.QueryRow(ctx, `select cluster_id::text from installer.clusters where tenant = $1 and name = $2
		and not removed`, s.Tenant, s.Cluster).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", false, nil
	}
	return id, err == nil, pg.Err(err)
}

// lastMessage is what was known of a scope's message before the tables were read. All that is decided by it, and
// written, holds only while that is how it is.
type lastMessage struct {
	sequence uint64 // of the message that PLANS holds, 0 where there is none
	noted    *note  // nil where nothing was ever published
}

// note is what a row of installer.published tells of the message with a sequence.
type note struct {
	sequence  int64
	digest    string
	published time.Time
	renew     *time.Time
}

// digest is what the message says that PLANS holds; it is empty where there is none, and where that is not known: the
// row tells of another message.
func (l lastMessage) digest() string {
	if l.sequence == 0 || l.noted == nil || uint64(l.noted.sequence) != l.sequence {
		return ""
	}
	return l.noted.digest
}

func (h *Hub) lastMessage(ctx context.Context, s protocol.Scope) (l lastMessage, err error) {
	if l.sequence, err = lastSequence(ctx, h.c.Bus, protocol.StreamPlans, protocol.PlansSubject(s)); err != nil {
		return l, err
	}
	var n note
	err = h.c.Pool.QueryRow(ctx, `select sequence, digest, published, renew from installer.published
		where tenant = $1 and cluster_id = $2 and namespace = $3`, s.Tenant, s.ClusterID, s.Namespace).
		Scan(&n.sequence, &n.digest, &n.published, &n.renew)
	if errors.Is(err, pgx.ErrNoRows) {
		return l, nil
	}
	l.noted = &n
	return l, pg.Err(err)
}

// overtaken is why a work ends that finds a row changed since it read it. What the other one has left is looked at
// again.
func overtaken(s protocol.Scope) error {
	return errs.New(errs.Conflict, "another worker published %s/%s meanwhile", s.Cluster, s.Namespace)
}

// lastSequence is the sequence of the last message of a subject, 0 where there is none.
func lastSequence(ctx context.Context, b *bus.Bus, kind, subject string) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	stream, err := b.Ensured(ctx, kind)
	if err != nil {
		return 0, err
	}
	m, err := stream.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, errs.Wrap(errs.Unavailable, err, "read the last message of %s", subject)
	}
	return m.Sequence, nil
}

// ensureContents makes sure that what the plans name is in CONTENT. Content of what is installed already is
// offered where it can be: nothing waits for it.
func (h *Hub) ensureContents(ctx context.Context, w *wanted) error {
	if len(w.contents) == 0 {
		return nil
	}
	fill, err := h.content.filling(ctx)
	if err != nil {
		return err
	}
	for _, d := range w.contents {
		err := h.content.ensure(ctx, fill, w.message.Scope.Tenant, d)
		if errs.Is(err, errs.NotFound) && !needed(w.message, string(d)) {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// needed reports whether a plan still to be executed names a content.
func needed(m protocol.ScopePlans, content string) bool {
	for _, i := range m.Installed {
		if i.Content == content {
			return false
		}
	}
	return true
}

// current reports whether the last message is there, says the same and has grants that are good for long
// enough. A message that stays is made again when the scope wants it.
func (h *Hub) current(ctx context.Context, w wanted, was lastMessage, sum string) (bool, error) {
	if was.noted == nil && was.sequence == 0 {
		// Nothing was ever wanted of this scope, and nothing is.
		return w.message.Nothing() && w.renew.IsZero(), nil
	}
	if was.digest() != sum {
		return false, nil
	}
	renew := was.noted.renew
	if renew != nil && !h.c.Now().Before(*renew) {
		return false, nil
	}
	if w.renew.IsZero() || renew != nil && !w.renew.Before(*renew) {
		return true, nil
	}
	return true, renewAt(ctx, h.c.Pool, w, was, w.renew)
}

// renewAt notes when a message that stays is looked at again.
func renewAt(ctx context.Context, pool *pg.Pool, w wanted, was lastMessage, at time.Time) error {
	s := w.message.Scope
	tag, err := pool.Exec(ctx, `update installer.published set renew = $4 where tenant = $1 and cluster_id = $2
		and namespace = $3 and sequence = $5`, s.Tenant, w.cluster, s.Namespace, at, was.noted.sequence)
	if err == nil && tag.RowsAffected() == 0 {
		return overtaken(s)
	}
	return pg.Err(err)
}

// send publishes the message behind the one that was there when the tables were read. Plans that do not
// fit into one message wait until older ones are finished.
func (h *Hub) send(ctx context.Context, w *wanted, last uint64) (sequence uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	body, err := h.encode(w)
	if err != nil {
		return 0, err
	}
	m := nats.NewMsg(protocol.PlansSubject(w.message.Scope))
	m.Data = body
	signature, err := protocol.SignMessage(m.Subject, body, h.c.Key)
	if err != nil {
		return 0, err
	}
	m.Header.Set(protocol.HeaderSignature, signature)
	ack, err := h.c.Bus.JetStream().PublishMsg(ctx, m,
		jetstream.WithExpectLastSequencePerSubject(last))
	if err := h.c.Bus.Published(protocol.StreamPlans, err); err != nil {
		return 0, errs.Wrap(errs.Unavailable, err, "publish the plans of %s/%s", w.message.Scope.Cluster,
			w.message.Scope.Namespace)
	}
	return ack.Sequence, nil
}

func (h *Hub) encode(w *wanted) ([]byte, error) {
	limit := h.c.Bus.Conn().MaxPayload() - messageSlack
	for {
		body, err := json.Marshal(w.message)
		if err != nil {
			return nil, errs.Wrap(errs.Internal, err, "encode plans")
		}
		if int64(len(body)) <= limit {
			return body, nil
		}
		left := shrink(&w.message)
		if left == "" {
			return nil, errs.New(errs.TooLarge, "what is wanted of %s/%s has %d bytes, a message takes %d",
				w.message.Scope.Cluster, w.message.Scope.Namespace, len(body), limit)
		}
		h.c.Log.Warn("a message to an executor is too large and goes without a part", "cluster",
			w.message.Scope.Cluster,
			"namespace", w.message.Scope.Namespace, "without", left, "bytes", len(body), "limit", limit)
	}
}

// shrink takes out of a message what can wait most easily, and says what that was: subscriptions and waiting plans,
// which are only shown, then configurations (where they are absent those of the plans hold), then the youngest plan.
// Whether effects are stopped and what is to be removed is never left out. It is empty where nothing is left to take
// out.
func shrink(m *protocol.ScopePlans) string {
	if annotated := dropMetadata(m); annotated {
		return "labels and annotations of what is shown"
	}
	if len(m.Subscriptions) > 0 || len(m.Waiting) > 0 {
		m.Subscriptions, m.Waiting = nil, nil
		return "subscriptions and waiting plans"
	}
	configured := false
	for i := range m.Installed {
		configured = configured || m.Installed[i].Config != nil
		m.Installed[i].Config = nil
	}
	if configured {
		return "configurations of what is installed"
	}
	n := len(m.Plans)
	if n == 0 {
		return ""
	}
	name := m.Plans[n-1].Name
	m.Plans = m.Plans[:n-1]
	return "plan " + name
}

// dropMetadata takes labels and annotations out of a message, and says whether there were any.
func dropMetadata(m *protocol.ScopePlans) (some bool) {
	noted := []*protocol.Metadata{&m.OperatorGroup.Metadata}
	for i := range m.Subscriptions {
		noted = append(noted, &m.Subscriptions[i].Metadata)
		if c := m.Subscriptions[i].Catalog; c != nil {
			noted = append(noted, &c.Metadata)
		}
	}
	for _, n := range noted {
		some = some || len(n.Labels)+len(n.Annotations) > 0
		*n = protocol.Metadata{}
	}
	return some
}

// savePublished notes what was sent. keys are those that anything in the message, or a step log that was begun for it,
// may be signed with: a step log keeps the grant under which it was opened, so that a key stays while plans or removals
// are under way in the scope. A key that is named nowhere can be retired.
func (h *Hub) savePublished(ctx context.Context, w wanted, was lastMessage, sum string, sequence uint64) error {
	var renew *time.Time
	if !w.renew.IsZero() {
		renew = &w.renew
	}
	s := w.message.Scope
	read := int64(-1) // no row has it
	if was.noted != nil {
		read = was.noted.sequence
	}
	tag, err := h.c.Pool.Exec(ctx, `insert into installer.published as p (tenant, cluster_id, namespace, cluster, digest,
		stopped, published, renew, keys, sequence)
		values ($1, $2, $3, $4, $5, $6, now(), $7, array[$8::text], $10)
		on conflict (tenant, cluster_id, namespace) do update set cluster = excluded.cluster, digest = excluded.digest,
		  stopped = excluded.stopped, published = excluded.published, renew = excluded.renew,
		  keys = case when $9 then array_append(array_remove(p.keys, $8), $8) else excluded.keys end,
		  sequence = excluded.sequence
		where p.sequence = $11`,
		s.Tenant, w.cluster, s.Namespace, s.Cluster, sum, w.message.Stopped,
		renew, h.keyID, len(w.message.Plans)+len(w.message.Removals) > 0, int64(sequence), read)
	if err == nil && tag.RowsAffected() == 0 {
		return overtaken(s)
	}
	return pg.Err(err)
}

// clear removes the subjects of clusters that were removed, and what is kept of them.
func (h *Hub) clear(ctx context.Context, s bus.Scope) error {
	rows, err := h.c.Pool.Query(ctx, `select cluster_id::text from installer.clusters where tenant = $1 and name = $2
		and removed`, s.Tenant, s.Cluster)
	if err != nil {
		return pg.Err(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return pg.Err(err)
	}
	for _, id := range ids {
		if err := h.purge(ctx, protocol.StreamPlans, protocol.PlansFilter(s.Tenant, id), 0); err != nil {
			return err
		}
		reports := protocol.SubjectReport + "." + s.Tenant + "." + id + ".>"
		if err := h.purge(ctx, protocol.StreamReports, reports, 0); err != nil {
			return err
		}
		if err := h.deleteRegistration(ctx, s.Tenant, id); err != nil {
			return err
		}
	}
	return nil
}

// purge removes the messages of the subjects that a filter names: all, or those up to a sequence.
func (h *Hub) purge(ctx context.Context, stream, filter string, upTo uint64) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	st, err := h.c.Bus.Stream(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	which := []jetstream.StreamPurgeOpt{jetstream.WithPurgeSubject(filter)}
	if upTo > 0 {
		which = append(which, jetstream.WithPurgeSequence(upTo+1)) // the first one that stays
	}
	if err == nil {
		err = st.Purge(ctx, which...)
	}
	return errs.Wrap(errs.Unavailable, err, "clear %s", filter)
}

// deleteRegistration drops what is kept of a registration that has ended. Its events stay in the log.
func (h *Hub) deleteRegistration(ctx context.Context, tenant, id string) error {
	return h.c.Pool.Tx(ctx, func(tx pgx.Tx) error {
		for _, table := range []string{
			"published", "reports", "holders", "holds", "grants", "csv_lives", "observations",
			"group_observations", "leftovers", "operator_details", "clusters",
		} {
			if _, err := tx.Exec(ctx, `delete from installer.`+table+` where tenant = $1 and cluster_id = $2`, tenant,
				id); err != nil {
				return err
			}
		}
		return nil
	})
}

// reportWithheld logs why a plan cannot be published, once per change, and stores the message for people.
func (h *Hub) reportWithheld(ctx context.Context, s bus.Scope, list []withheld) {
	for _, w := range list {
		h.mu.Lock()
		known := h.withheldWhy[w.plan] == w.reason+w.why
		h.withheldWhy[w.plan] = w.reason + w.why
		h.mu.Unlock()
		if known {
			continue
		}
		h.c.Log.ErrorContext(ctx, "a plan cannot be handed to its executor", "cluster", s.Cluster, "namespace",
			s.Namespace, "plan", w.name, "reason", w.why)
		if _, err := h.c.Pool.Exec(ctx, `insert into installer.messages (tenant, kind, subject, message)
			values ($1, 'installplan', $2, $3)
			on conflict (tenant, kind, subject) do update set message = excluded.message, updated = now()`,
			s.Tenant, s.Cluster+"/"+s.Namespace+"/"+w.name, w.why); err != nil {
			h.c.Log.WarnContext(ctx, "cannot keep a message", "error", err)
		}
		if w.reason == "" {
			continue
		}
		if err := h.block(ctx, s.Tenant, w); err != nil {
			h.c.Log.WarnContext(ctx, "cannot record that a plan gets no grant; trying again", "plan", w.name, "error", err)
			h.mu.Lock()
			delete(h.withheldWhy, w.plan)
			h.mu.Unlock()
		}
	}
}
