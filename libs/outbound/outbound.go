// Package outbound makes clients for requests to addresses that people give. They lead to nobody whom only this site
// reaches, but for networks that an operator allows, whatever names lead to at that moment; they follow no redirect and
// use no proxy, which would connect where nobody looks.
package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/reach"
)

const (
	// MaxHeader bounds the headers of an answer.
	MaxHeader = 16 << 10
	// maxIdleConns bounds the connections that are kept, to all hosts.
	maxIdleConns = 256
	// maxIdleOfHost bounds those of one host: that of a chat takes the messages of many webhooks. With width alone
	// nearly every message of twenty webhooks to one host made a connection of its own.
	maxIdleOfHost = maxIdleConns / 2
	// idleConn is how long one is kept.
	idleConn = 90 * time.Second
)

// Client is a client whose requests take no longer than a timeout.
func Client(allowed []netip.Prefix, timeout time.Duration) *http.Client {
	guard := reach.Guard{Allowed: allowed}
	dialer := net.Dialer{
		Timeout: timeout,
		// The address is known here, and the connection is not made yet.
		ControlContext: func(_ context.Context, _, found string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(found)
			if err != nil {
				return err
			}
			return guard.Check(at.Addr())
		},
	}
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true, DisableCompression: true,
			MaxIdleConns: maxIdleConns, MaxIdleConnsPerHost: maxIdleOfHost, IdleConnTimeout: idleConn,
			TLSHandshakeTimeout: timeout, MaxResponseHeaderBytes: MaxHeader,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		},
	}
}

// Trouble is why there is no answer.
type Trouble string

// The kinds of trouble. Nowhere is one for a name that is not known, one that leads where it may not, and an address
// that it may not: apart they would tell which names there are in the network here.
const (
	Nowhere     Trouble = "AddressNotAllowed"
	Certificate Trouble = "CertificateNotGood"
	Timeout     Trouble = "TimedOut"
	Refused     Trouble = "ConnectionRefused"
	Failed      Trouble = "ConnectionFailed"
)

// TroubleOf says what went wrong with a request, in a way that tells nothing of the network here.
func TroubleOf(err error) Trouble {
	var unknown *net.DNSError
	var refused *errs.Error
	var timeout interface{ Timeout() bool }
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	switch {
	case errors.As(err, &refused), errors.As(err, &unknown):
		return Nowhere
	case errors.As(err, &certificate), errors.As(err, &authority):
		return Certificate
	case errors.As(err, &timeout) && timeout.Timeout():
		return Timeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	default:
		return Failed
	}
}

// Networks reads the networks of a setting, separated by commas.
func Networks(name, setting string) (list []netip.Prefix, err error) {
	for one := range strings.SplitSeq(setting, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		n, err := netip.ParsePrefix(one)
		if err != nil {
			return nil, errs.New(errs.Invalid, "setting %s: %q is no network such as 10.0.0.0/8", name, one).At(name, "")
		}
		list = append(list, n.Masked())
	}
	return list, nil
}
