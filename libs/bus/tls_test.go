package bus_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/bus/natslocal"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/internal/certtest"
	"github.com/chandler-fleet/chandler/libs/natsconn"
)

// secureServer is a NATS server that shows a certificate of the authority, and asks its clients for one of it.
func secureServer(t *testing.T, authority *certtest.Authority) *natslocal.Server {
	t.Helper()
	dir := t.TempDir()
	certificate, key := authority.Issue(t, "127.0.0.1")
	for name, text := range map[string]string{"ca.crt": authority.PEM(), "tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := natslocal.Start(t.Context(), natslocal.Options{Dir: t.TempDir(), Config: fmt.Sprintf(
		"tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }", filepath.Join(dir, "tls.crt"),
		filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt"))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
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
			natsconn.Settings{CA: other.PEM(), ClientCertificate: certificate, ClientKey: key}, "unknown authority",
		},
		"the system's authorities": {
			natsconn.Settings{ClientCertificate: certificate, ClientKey: key}, "unknown authority",
		},
		"no certificate of the client": {natsconn.Settings{CA: authority.PEM()}, "nats-client-certificate"},
		"a strange certificate of the client": {
			natsconn.Settings{CA: authority.PEM(), ClientCertificate: strange, ClientKey: strangeKey},
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
	b, err := bus.Connect(t.Context(), natsconn.Settings{
		URL: url, CA: authority.PEM(), ClientCertificate: certificate, ClientKey: key,
	}, bus.WithLog(bustest.Log(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if state, err := b.Conn().TLSConnectionState(); err != nil || !state.HandshakeComplete {
		t.Errorf("the connection has no TLS: %v", err)
	}
}
