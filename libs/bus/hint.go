package bus

import (
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/eventlog"
)

// hint is the message for one event that follows prev in the stream.
func hint(r *eventlog.Recorded, prev cursor) *nats.Msg {
	m := nats.NewMsg(Subject(r.Tenant, r.StreamID))
	m.Header.Set(jetstream.MsgIDHeader, r.Position.String())
	m.Header.Set(HeaderType, string(r.Type))
	m.Header.Set(HeaderSubject, r.Envelope.Subject)
	m.Header.Set(HeaderVersion, strconv.FormatInt(r.Version, 10))
	m.Header.Set(HeaderHash, string(r.Hash))
	if r.TraceParent != "" {
		m.Header.Set(headerTrace, r.TraceParent)
	}
	if prev.pos.IsZero() {
		m.Header.Set(jetstream.ExpectedLastSeqHeader, strconv.FormatUint(prev.seq, 10))
	} else {
		m.Header.Set(jetstream.ExpectedLastMsgIDHeader, prev.pos.String())
	}
	if len(r.Bytes) <= hintBytes {
		m.Data = r.Bytes
	} else {
		m.Header.Set(HeaderOmitted, strconv.Itoa(len(r.Bytes)))
	}
	return m
}
