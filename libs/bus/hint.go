package bus

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
)

// hint is the message for one event that follows prev in the stream. The event itself is left out if it has more than
// limit bytes.
func hint(r *eventlog.Recorded, prev cursor, key []byte, limit int) *nats.Msg {
	m := nats.NewMsg(Subject(r.Tenant, r.StreamID))
	m.Header.Set(jetstream.MsgIDHeader, r.Position.String())
	m.Header.Set(HeaderType, string(r.Type))
	m.Header.Set(HeaderSubject, r.Envelope.Subject)
	m.Header.Set(HeaderVersion, strconv.FormatInt(r.Version, 10))
	m.Header.Set(HeaderHash, string(r.Hash))
	m.Header.Set(HeaderMAC, hintMAC(key, r.Position, r.Hash))
	if r.TraceParent != "" {
		m.Header.Set(headerTrace, r.TraceParent)
	}
	if prev.pos.IsZero() {
		m.Header.Set(jetstream.ExpectedLastSeqHeader, strconv.FormatUint(prev.seq, 10))
	} else {
		m.Header.Set(jetstream.ExpectedLastMsgIDHeader, prev.pos.String())
	}
	if len(r.Bytes) <= limit {
		m.Data = r.Bytes
	} else {
		m.Header.Set(HeaderOmitted, strconv.Itoa(len(r.Bytes)))
	}
	return m
}

// hintMAC authenticates the claim that the log holds the event of this hash at this position. The key is in the log's
// database: who can only publish on NATS cannot make a hint that counts as evidence of lost commits.
func hintMAC(key []byte, at events.Position, hash digest.Digest) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(strings.Join([]string{"chandler.hint.v1", at.String(), string(hash)}, "\n"))) // never fails
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// readHint returns what a message of EVENTS claims, and whether this installation wrote it.
func readHint(h nats.Header, key []byte) (at events.Position, hash digest.Digest, ours bool) {
	at, err := events.ParsePosition(h.Get(jetstream.MsgIDHeader))
	if err != nil {
		return at, "", false
	}
	hash, err = digest.Parse(h.Get(HeaderHash))
	if err != nil || at.IsZero() {
		return at, hash, false
	}
	return at, hash, hmac.Equal([]byte(h.Get(HeaderMAC)), []byte(hintMAC(key, at, hash)))
}
