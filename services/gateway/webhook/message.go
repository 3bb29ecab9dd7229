package webhook

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TypeTest is the type of the event that a test sends. It is in no log.
const TypeTest = "webhook.test"

// Message is the body of a request with the headers that say what it is.
type Message struct {
	Header map[string]string
	Body   []byte
}

// Address is where a webhook sends, with the key that PagerDuty wants in the body.
func Address(target, given string) (address, key string) {
	u, err := url.Parse(given)
	if target != TargetPagerDuty || err != nil {
		return given, ""
	}
	q := u.Query()
	key = q.Get(RoutingKey)
	q.Del(RoutingKey)
	u.RawQuery = q.Encode()
	return u.String(), key
}

// Encode writes an event, given as JSON of a CloudEvent, for the target of a webhook; key is that of Address.
func Encode(spec events.WebhookSpec, key string, event []byte) (Message, error) {
	switch {
	case spec.Target == TargetSlack:
		return slack(event)
	case spec.Target == TargetPagerDuty:
		return pagerDuty(key, event)
	case spec.Mode == ModeBinary:
		return binary(event)
	default:
		// HTTP Protocol Binding for CloudEvents 1.0.2, structured content mode.
		return message("application/cloudevents+json; charset=utf-8", event), nil
	}
}

func message(contentType string, body []byte) Message {
	return Message{Header: map[string]string{"Content-Type": contentType}, Body: body}
}

// binary writes the binary content mode: the data is the body, and each attribute a header with the prefix ce-.
func binary(event []byte) (Message, error) {
	var attributes map[string]json.RawMessage
	if err := json.Unmarshal(event, &attributes); err != nil {
		return Message{}, errs.Wrap(errs.Internal, err, "read an event")
	}
	m := message("application/json", attributes["data"])
	delete(attributes, "data")
	for name, raw := range attributes {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			text = string(raw) // a number
		}
		m.Header["ce-"+name] = headerValue(text)
	}
	return m, nil
}

// headerValue encodes what may not stand in a header as the binding says: percent, quote, space and what is not
// printable ASCII.
func headerValue(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c > '~' || c == '"' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// TestEvent is the event that a test sends: no event of the log, with a type of its own.
func TestEvent(name, id string, at time.Time) ([]byte, error) {
	data, err := json.Marshal(map[string]string{"webhook": name})
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "write a test")
	}
	at = at.UTC().Truncate(time.Second) // as events of the log are sent
	raw, err := json.Marshal(model.Event{
		SpecVersion: "1.0", ID: id, Source: "/chandler/gateway", Type: TypeTest, Subject: name, Time: at,
		Recorded: at, Data: data,
	})
	return raw, errs.Wrap(errs.Internal, err, "write a test")
}

// Timestamp is the header webhook-timestamp.
func Timestamp(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }
