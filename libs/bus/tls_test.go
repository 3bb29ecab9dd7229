package bus_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/bus/natslocal"
	"github.com/chandler-fleet/chandler/libs/certtest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/renewed"
)

// secureServer is a NATS server that shows a certificate of the authority, and asks its clients for one of it.
func secureServer(t *testing.T, authority *certtest.Authority) *natslocal.Server {
	t.Helper()
	return secureServerAt(t, authority, 0)
}

// secureServerAt is one on a port.
func secureServerAt(t *testing.T, authority *certtest.Authority, port int) *natslocal.Server {
	t.Helper()
	dir := t.TempDir()
	certificate, key := authority.Issue(t, "127.0.0.1")
	for name, text := range map[string]string{"ca.crt": authority.PEM(), "tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := natslocal.Start(t.Context(), natslocal.Options{Dir: t.TempDir(), Port: port, Config: fmt.Sprintf(
		"tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }", filepath.Join(dir, "tls.crt"),
		filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt"))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// withTLS are settings with an authority, a certificate and its key.
func withTLS(ca, certificate, key string) natsconn.Settings {
	return natsconn.Settings{
		CA: renewed.Of(ca), ClientCertificate: renewed.Of(certificate), ClientKey: renewed.Of(key),
	}
}

// TLS to NATS with certificates of both sides. A server that another authority has signed, and a client without a
// certificate or with a strange one, are told at once and in one sentence; nobody waits for what will not change.
func TestTLS(t *testing.T) {
	t.Parallel()
	authority, other := certtest.NewAuthority(t), certtest.NewAuthority(t)
	url := secureServer(t, authority).URL()
	certificate, key := authority.Issue(t)
	strange, strangeKey := other.Issue(t)
	for name, c := range map[string]struct {
		access natsconn.Settings
		want   string
	}{
		"another authority": {
			withTLS(other.PEM(), certificate, key), "unknown authority",
		},
		"the system's authorities": {
			withTLS("", certificate, key), "unknown authority",
		},
		"no certificate of the client": {natsconn.Settings{CA: renewed.Of(authority.PEM())}, "nats-client-certificate"},
		"a strange certificate of the client": {
			withTLS(authority.PEM(), strange, strangeKey),
			"nats-client-certificate",
		},
		"nothing": {natsconn.Settings{}, "unknown authority"},
	} {
		c.access.URL = url
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err := tryConnect(ctx, t, c.access)
		cancel()
		if !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), c.want) ||
			errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	access := withTLS(authority.PEM(), certificate, key)
	access.URL = url
	b, err := bus.Connect(t.Context(), access, bus.WithLog(bustest.Log(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if state, err := b.Conn().TLSConnectionState(); err != nil || !state.HandshakeComplete {
		t.Errorf("the connection has no TLS: %v", err)
	}
}

// Authority and certificate of the client are renewed in their files while the service runs: the server comes back with
// a certificate of another authority, wants one of that from its clients, and is connected to without a restart.
func TestRenewedCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authority := certtest.NewAuthority(t)
	renew := func(name, text string) renewed.Setting {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return renewed.Setting{Text: text, File: file}
	}
	access := natsconn.Settings{CA: renew("ca.crt", authority.PEM())}
	certificate, key := authority.Issue(t)
	access.ClientCertificate, access.ClientKey = renew("tls.crt", certificate), renew("tls.key", key)
	s := secureServer(t, authority)
	access.URL = s.URL()
	b, err := bus.Connect(t.Context(), access, bus.WithLog(bustest.Log(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	at, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}

	other := certtest.NewAuthority(t)
	renew("ca.crt", other.PEM())
	certificate, key = other.Issue(t)
	renew("tls.crt", certificate)
	renew("tls.key", key)
	s.Stop()
	secureServerAt(t, other, port)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for look := time.NewTicker(10 * time.Millisecond); b.Check(ctx) != nil; {
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatalf("not connected with the new certificates: %v", b.Conn().LastError())
		}
	}
	state, err := b.Conn().TLSConnectionState()
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(other.PEM()))
	if _, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool}); err != nil {
		t.Errorf("the server shows another certificate: %v", err)
	}
}
