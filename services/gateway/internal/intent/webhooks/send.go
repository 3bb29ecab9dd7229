package webhooks

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/reach"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/webhook"
)

const (
	// maxAnswer bounds what is read of an answer, whose status is all that counts.
	maxAnswer = 4 << 10
	// maxAnswerHeader bounds its headers.
	maxAnswerHeader = 16 << 10
	// maxIdleConns bounds the connections that are kept for the next event, of all receivers.
	maxIdleConns = 256
	// maxIdleOfHost bounds those of one host: that of a chat takes the messages of many webhooks. With width alone
	// nearly every message of twenty webhooks to one host made a connection of its own.
	maxIdleOfHost = maxIdleConns / 2
	// idleConn is how long one is kept.
	idleConn = 90 * time.Second
)

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
	guard := reach.Guard{Allowed: allowed}
	dialer := net.Dialer{
		Timeout: webhook.Timeout,
		// The address is known here, and the connection is not made yet.
		ControlContext: func(_ context.Context, _, found string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(found)
			if err != nil {
				return err
			}
			return guard.Check(at.Addr())
		},
	}
	return &Sender{client: &http.Client{
		Timeout:       webhook.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{ // without a proxy: it would connect where the guard does not see it
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true, DisableCompression: true,
			MaxIdleConns: maxIdleConns, MaxIdleConnsPerHost: maxIdleOfHost, IdleConnTimeout: idleConn,
			TLSHandshakeTimeout: webhook.Timeout, MaxResponseHeaderBytes: maxAnswerHeader,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		},
	}}
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

// nowhere is one sentence for a name that is not known, one that leads where webhooks may not, and an address that they
// may not: apart they would tell which names there are in the network here.
const nowhere = "its address is not known, or none that webhooks may lead to"

// reasonOf says what went wrong in words that tell nothing of the network here, and stay the same while it goes on.
func reasonOf(err error) string {
	var unknown *net.DNSError
	var refused *errs.Error
	var timeout interface{ Timeout() bool }
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	switch {
	case errors.As(err, &refused), errors.As(err, &unknown):
		return nowhere
	case errors.As(err, &certificate), errors.As(err, &authority):
		return "its certificate is not good"
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("it did not answer within %s", webhook.Timeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it refused the connection"
	default:
		return "the connection failed"
	}
}
