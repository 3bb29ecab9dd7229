package hubclient

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// ReportScope writes what is known of a scope as the last value of its subject, and returns what stands for it in the
// digest over all reports.
func (h *Hub) ReportScope(ctx context.Context, r protocol.ScopeReport) (protocol.Entry, error) {
	r.Session, r.Sequence = h.session.ID(), h.session.Next()
	return h.publish(ctx, protocol.ScopeReportSubject(r.Scope), r)
}

// ReportCluster writes what is known of the cluster.
func (h *Hub) ReportCluster(ctx context.Context, r protocol.ClusterReport) error {
	r.Session, r.Sequence = h.session.ID(), h.session.Next()
	_, err := h.publish(ctx, protocol.ClusterReportSubject(h.tenant, h.cluster), r)
	return err
}

// Repeats calls repeat when the hub asks for all reports again, until the returned function is called.
func (h *Hub) Repeats(repeat func()) (stop func() error, err error) {
	sub, err := h.js.Conn().Subscribe(protocol.RepeatSubject(h.tenant, h.cluster), func(*nats.Msg) { repeat() })
	if err != nil {
		return nil, errs.Wrap(errs.Unavailable, err, "listen for requests to repeat reports")
	}
	return sub.Unsubscribe, nil
}

func (h *Hub) publish(ctx context.Context, subject string, v any) (protocol.Entry, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return protocol.Entry{}, errs.Wrap(errs.Internal, err, "encode report")
	}
	_, err = h.js.PublishMsg(ctx, SignedReport(subject, data, h.session))
	if errors.Is(err, nats.ErrMaxPayload) {
		return protocol.Entry{}, errs.New(errs.TooLarge, "the report has %d bytes, a message takes %d", len(data),
			h.maxMessage())
	}
	return protocol.EntryOf(subject, data), away(err, protocol.StreamReports)
}

// SignedReport is the message of a report that a session signs.
func SignedReport(subject string, data []byte, by *protocol.Session) *nats.Msg {
	m := nats.NewMsg(subject)
	m.Data = data
	m.Header.Set(protocol.HeaderSession, by.ID())
	m.Header.Set(protocol.HeaderReportSignature, by.SignReport(subject, data))
	return m
}

// maxMessage is how many bytes the server takes in one message, NATS' default before it was ever reached.
func (h *Hub) maxMessage() int {
	if n := h.js.Conn().MaxPayload(); n > 0 {
		return int(n)
	}
	return maxPlansBytes
}
