package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Status returns the kind of an answer's status, "" for success.
func Status(code int) errs.Kind {
	switch {
	case code < http.StatusBadRequest:
		return ""
	case code == http.StatusUnauthorized || code == http.StatusForbidden || code == http.StatusProxyAuthRequired:
		return errs.Forbidden
	case code == http.StatusNotFound || code == http.StatusGone:
		return errs.NotFound
	case code == http.StatusRequestTimeout || code == http.StatusTooManyRequests ||
		code >= http.StatusInternalServerError:
		return errs.Unavailable
	default:
		return errs.Invalid
	}
}

// Explain gives an error of the network its kind and a sentence that is the same each time: without
// addresses, ports and the URL, which the caller has said (STYLE: error text is deterministic).
func Explain(err error) error {
	var (
		known     *errs.Error
		dns       *net.DNSError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		alert     tls.AlertError
		errno     syscall.Errno
		timeout   interface{ Timeout() bool }
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case errors.As(err, &authority):
		return errs.New(errs.Invalid,
			"its certificate is signed by an authority that is not trusted; add that one as a secret of kind ca")
	case errors.As(err, &host):
		return errs.New(errs.Invalid, "its certificate is for another host")
	case errors.As(err, &invalid):
		return errs.New(errs.Invalid, "its certificate is not valid (%s)",
			strings.TrimPrefix(invalid.Error(), "x509: "))
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return errs.New(errs.Invalid,
			"it does not speak TLS; set insecure in the settings of the source if that is meant")
	case errors.As(err, &alert):
		return errs.New(errs.Invalid, "it refuses TLS: %s", alert.Error())
	case errors.As(err, &dns) && dns.IsNotFound:
		return errs.New(errs.Unavailable, "the name of the host is not known")
	case errors.As(err, &errno):
		return errs.New(errs.Unavailable, "%s", errno.Error())
	case errors.Is(err, context.Canceled):
		return errs.Wrap(errs.Unavailable, context.Canceled, "the look was ended")
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return errs.New(errs.Unavailable, "no answer in time")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errs.New(errs.Unavailable, "the connection broke off in the midst of an answer")
	default:
		return errs.New(errs.Unavailable, "%s", innermost(err))
	}
}

// innermost is the text of an error without what url.Error and net.OpError put before it.
func innermost(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	return err.Error()
}

// About puts a name before an error, and keeps its kind, and the place and the rule that it names.
func About(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	out := errs.Wrap(errs.KindOf(err), err, format, args...)
	if e := ruled(err); e != nil {
		if outer, ok := errors.AsType[*errs.Error](out); ok {
			return outer.At(e.Field, e.Rule)
		}
	}
	return out
}

// ruled finds the first error in a chain that names a place or a rule.
func ruled(err error) *errs.Error {
	//nolint:errorlint // each error of the chain is examined by itself
	if e, ok := err.(*errs.Error); ok && (e.Field != "" || e.Rule != "") {
		return e
	}
	switch u := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		return ruled(u.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range u.Unwrap() {
			if e := ruled(one); e != nil {
				return e
			}
		}
	}
	return nil
}
