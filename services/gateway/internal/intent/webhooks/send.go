package webhooks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/chandler-fleet/chandler/libs/outbound"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/webhook"
)

// maxAnswer bounds what is read of an answer, whose status is all that counts.
const maxAnswer = 4 << 10

// Answer is what became of an attempt.
type Answer struct {
	Status     int           // of HTTP; 0 without an answer
	RetryAfter time.Duration // what the receiver asks for
	Error      string        // why it was not taken; it names no address
	Took       time.Duration
}

// Taken says whether the receiver took the message.
func (a Answer) Taken() bool { return a.Error == "" }

// Sender sends to addresses that people give: to nobody whom only this site reaches, but for networks that an operator
// allows, whatever names lead to at that moment; it follows no redirect, and reads little of an answer.
type Sender struct{ client *http.Client }

// NewSender makes a sender.
func NewSender(allowed []netip.Prefix) *Sender {
	return &Sender{client: outbound.Client(allowed, webhook.Timeout)}
}

// deliver sends one event of a webhook once. An error says that it cannot be written; all else is an answer.
func (s *Sender) deliver(
	ctx context.Context, row store.WebhookRow, id string, event []byte, now time.Time,
) (Answer, error) {
	address, key := webhook.Address(row.Spec.Target, row.Sealed.URL)
	m, err := webhook.Encode(row.Spec, key, event)
	if err != nil {
		return Answer{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(m.Body))
	if err != nil {
		return Answer{Error: "the address cannot be sent to"}, nil //nolint:nilerr // it would quote the address
	}
	for name, value := range m.Header {
		req.Header.Set(name, value)
	}
	req.Header.Set("User-Agent", "Chandler")
	req.Header.Set(webhook.HeaderID, id)
	req.Header.Set(webhook.HeaderTimestamp, webhook.Timestamp(now))
	req.Header.Set(webhook.HeaderSignature, webhook.Sign(row.Sealed.Secrets, id, now, m.Body))
	began := time.Now()
	a := s.send(req)
	if a.Error != nowhere { // how long that took would tell whether the name resolves
		a.Took = time.Since(began)
	}
	return a, nil
}

func (s *Sender) send(req *http.Request) Answer {
	resp, err := s.client.Do(req)
	if err != nil {
		return Answer{Error: reasonOf(err)}
	}
	defer func() { _ = resp.Body.Close() }() // what is left of the answer is of no interest
	a := Answer{Status: resp.StatusCode}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		a.RetryAfter = time.Duration(min(seconds, int(webhook.MaxRetryAfter/time.Second))) * time.Second
	}
	switch code := resp.StatusCode; {
	case code >= http.StatusOK && code < http.StatusMultipleChoices:
		// A short answer is read to its end, so that the connection is there for the next event.
		_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer)
	case code < http.StatusBadRequest:
		a.Error = fmt.Sprintf("it answered %d: redirects are not followed", code)
	default:
		a.Error = fmt.Sprintf("it answered %d", code)
	}
	return a
}

// nowhere is the sentence for an address that is not known, or not allowed.
const nowhere = "its address is not known, or none that webhooks may lead to"

// reasonOf says what went wrong in words that stay the same while it goes on.
func reasonOf(err error) string {
	switch outbound.TroubleOf(err) {
	case outbound.Nowhere:
		return nowhere
	case outbound.Certificate:
		return "its certificate is not good"
	case outbound.Timeout:
		return fmt.Sprintf("it did not answer within %s", webhook.Timeout)
	case outbound.Refused:
		return "it refused the connection"
	default:
		return "the connection failed"
	}
}
