// Package events is the one place where events are defined: their types, versions, payloads and the
// envelope around them.
//
// A payload is a plain struct of strings, numbers, times and digests, so that renaming a domain type
// cannot change stored JSON. Its type name is written once, by its EventType method; All is the
// explicit registry; testdata holds one example of every version for ever. Payloads hold names of
// the field, digests and codes: no personal data, no free text, no configuration values (DESIGN D2).
package events

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// DefaultTenant is the tenant of an installation that has only one.
const DefaultTenant = "default"

// AllTenants is what a service that works for every tenant sets as its tenant in the database.
const AllTenants = "*"

// Kind names a family of streams: one stream is the life of one thing.
type Kind string

// The kinds of stream (DESIGN, settled details: Streams).
const (
	KindCluster       Kind = "cluster"
	KindCatalog       Kind = "catalog"
	KindOperatorGroup Kind = "operatorgroup"
	KindSubscription  Kind = "subscription"
	KindInstallPlan   Kind = "installplan"
	KindCSV           Kind = "csv"
	KindAccess        Kind = "access"
	KindCatalogSecret Kind = "catalogsecret"
	KindPolicy        Kind = "policy"
	KindRetention     Kind = "retention"
	KindWebhook       Kind = "webhook"

	KindFleetSubscription Kind = "fleetsubscription"
	KindRollout           Kind = "rollout"
	KindFleetBudget       Kind = "fleetbudget"
)

// namespaceStream is the UUIDv5 namespace of stream ids. It is arbitrary and must never change.
var namespaceStream = uuid.MustParse("6b1d9a54-3c0e-5c55-9c5e-1f4a0c1d7e11")

// namespaceEvent is the UUIDv5 namespace of event ids. It is arbitrary and must never change.
var namespaceEvent = uuid.MustParse("0d7d5b0e-8a43-5c0f-a5a6-6f5a2f3f9b22")

// StreamID names one stream. Two lives of one name (created, deleted, created again) share Key and
// differ in Incarnation, which counts from 1.
type StreamID struct {
	Kind        Kind
	Key         uuid.UUID
	Incarnation int
}

// Key derives the stable id of a natural key (such as "cluster/namespace/name") of a kind and tenant.
func Key(tenant string, kind Kind, natural string) uuid.UUID {
	return uuid.NewSHA1(namespaceStream, []byte(tenant+"\x00"+string(kind)+"\x00"+natural))
}

// UUID is the id of this incarnation; it is what NATS subjects carry.
func (s StreamID) UUID() uuid.UUID {
	return uuid.NewSHA1(s.Key, []byte(strconv.Itoa(s.Incarnation)))
}

// String is "kind:key:incarnation"; ParseStreamID reads it.
func (s StreamID) String() string {
	return string(s.Kind) + ":" + s.Key.String() + ":" + strconv.Itoa(s.Incarnation)
}

// ParseStreamID reads what String wrote.
func ParseStreamID(t string) (StreamID, error) {
	p := strings.Split(t, ":")
	if len(p) != 3 {
		return StreamID{}, fmt.Errorf("%q is not a stream id: want kind:uuid:incarnation", t)
	}
	key, err := uuid.Parse(p[1])
	if err != nil {
		return StreamID{}, fmt.Errorf("stream id %q: %w", t, err)
	}
	n, err := strconv.Atoi(p[2])
	if err != nil || n < 1 {
		return StreamID{}, fmt.Errorf("stream id %q: incarnation must be a positive number", t)
	}
	return StreamID{Kind: Kind(p[0]), Key: key, Incarnation: n}, nil
}

// Position is a place in the log: the epoch (raised when the record has lost commits) and a dense count.
type Position struct {
	Epoch int64 `json:"epoch"`
	N     int64 `json:"n"`
}

// String is "epoch-n"; ParsePosition reads it.
func (p Position) String() string {
	return strconv.FormatInt(p.Epoch, 10) + "-" + strconv.FormatInt(p.N, 10)
}

// IsZero reports whether p is before every event.
func (p Position) IsZero() bool { return p.N == 0 }

// Less orders positions by epoch, then count.
func (p Position) Less(q Position) bool {
	return p.Epoch < q.Epoch || p.Epoch == q.Epoch && p.N < q.N
}

// ParsePosition reads what String wrote.
func ParsePosition(s string) (Position, error) {
	e, n, ok := strings.Cut(s, "-")
	epoch, err1 := strconv.ParseInt(e, 10, 64)
	count, err2 := strconv.ParseInt(n, 10, 64)
	if !ok || err1 != nil || err2 != nil || epoch < 1 || count < 0 {
		return Position{}, fmt.Errorf("%q is not a position: want epoch-number, such as 1-42", s)
	}
	return Position{Epoch: epoch, N: count}, nil
}

// Meta is what a decider knows beside the payload. Time and Command come in as data, so that a
// retry of the same command carries the same event ids.
type Meta struct {
	Tenant      string
	Source      Writer    // the service that decides
	Command     uuid.UUID // id of the command; event ids derive from it and the index
	Correlation string    // id of what started the chain, such as the first command
	Causation   string    // id of the event or command that led here
	TraceParent string    // W3C trace context
	Actor       string    // opaque id of who asked; never a name or an address
	Via         string    // opaque id of the service account through which the actor asked; "" for none
	Time        time.Time // when it was decided, UTC
}

// Envelope is one event as it is stored: the CloudEvents 1.0 attributes of DESIGN §3. Its JSON
// bytes are kept exactly and hashed.
type Envelope struct {
	SpecVersion string          `json:"specversion"`
	ID          string          `json:"id"`
	Source      string          `json:"source"`
	Type        Type            `json:"type"`
	Subject     string          `json:"subject"` // natural key of the stream, such as cluster/namespace/name
	Time        time.Time       `json:"time"`
	Tenant      string          `json:"tenant"`
	Stream      string          `json:"stream"`
	Version     int64           `json:"streamversion"`
	Correlation string          `json:"correlationid,omitempty"`
	Causation   string          `json:"causationid,omitempty"`
	TraceParent string          `json:"traceparent,omitempty"`
	Actor       string          `json:"authid,omitempty"`
	Via         string          `json:"authvia,omitempty"` // service account through which the actor asked
	Data        json.RawMessage `json:"data"`
}

// Seal builds the envelope of the index-th event of a command; version is its place in the stream.
func Seal(m Meta, stream StreamID, subject string, version int64, index int, p Payload) (Envelope, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return Envelope{}, fmt.Errorf("encode %s: %w", p.EventType(), err)
	}
	return Envelope{
		SpecVersion: "1.0",
		ID:          EventID(m.Command, stream, index).String(),
		Source:      "/chandler/" + string(m.Source),
		Type:        p.EventType(),
		Subject:     subject,
		Time:        m.Time.UTC(),
		Tenant:      m.Tenant,
		Stream:      stream.String(),
		Version:     version,
		Correlation: m.Correlation,
		Causation:   m.Causation,
		TraceParent: m.TraceParent,
		Actor:       m.Actor,
		Via:         m.Via,
		Data:        data,
	}, nil
}

// FactCommand derives the command of facts that nobody asked for, from the epoch of the record, where they stand and
// what they say: a repeated attempt has the same ids, and another fact has others. So has the same fact, once a record
// that lost commits comes to the same version of the same stream again, in a later epoch: what people and programs have
// seen before is not what is recorded now. Nothing is added for the first epoch, whose ids stay as they were before the
// epoch was a part of them.
func FactCommand(space uuid.UUID, epoch int64, place string, payloads ...Payload) (uuid.UUID, error) {
	h := sha256.New()
	if epoch > 1 {
		h.Write([]byte(strconv.FormatInt(epoch, 10) + "\x00\x00"))
	}
	h.Write([]byte(place))
	for _, p := range payloads {
		data, err := json.Marshal(p)
		if err != nil {
			return uuid.Nil, fmt.Errorf("encode a payload of type %s: %w", p.EventType(), err)
		}
		h.Write([]byte("\x00" + string(p.EventType()) + "\x00"))
		h.Write(data)
	}
	return uuid.NewSHA1(space, h.Sum(nil)), nil
}

// EventID derives an event's id from its command, so that a retry of the command has the same id.
func EventID(command uuid.UUID, stream StreamID, index int) uuid.UUID {
	return uuid.NewSHA1(namespaceEvent, []byte(command.String()+"\x00"+stream.String()+"\x00"+strconv.Itoa(index)))
}
