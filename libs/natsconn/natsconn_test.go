package natsconn_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/bus/natslocal"
	"github.com/chandler-fleet/chandler/libs/certtest"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/renewed"
)

// elsewhere is a connection through an address of this machine that is not loopback.
func elsewhere(t *testing.T, config string, options ...nats.Option) *nats.Conn {
	t.Helper()
	srv, err := natslocal.Start(t.Context(), natslocal.Options{Dir: t.TempDir(), Config: config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	address := strings.TrimPrefix(srv.URL(), "nats://")
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(own(t), "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() }) // ends the relay
	go relay(ln, address)
	conn, err := nats.Connect("nats://"+ln.Addr().String(), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// secured is a connection with TLS, through an address that is not loopback, as its settings have it.
func secured(t *testing.T, users string) (*nats.Conn, natsconn.Settings) {
	t.Helper()
	authority, dir := certtest.NewAuthority(t), t.TempDir()
	certificate, key := authority.Issue(t, own(t))
	for name, text := range map[string]string{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	access := natsconn.Settings{CA: renewed.Of(authority.PEM()), User: "gateway", Password: "secret"}
	options, err := access.Options()
	if err != nil {
		t.Fatal(err)
	}
	return elsewhere(t, users+fmt.Sprintf("\ntls { cert_file: %q, key_file: %q }\n", filepath.Join(dir, "tls.crt"),
		filepath.Join(dir, "tls.key")), options...), access
}

// own is an address of this machine that is not loopback.
func own(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback")
	return ""
}

func relay(ln net.Listener, to string) {
	for {
		in, err := ln.Accept()
		if err != nil {
			return
		}
		out, err := net.DialTimeout("tcp", to, 5*time.Second)
		if err != nil {
			_ = in.Close()
			continue
		}
		go pipe(in, out)
		go pipe(out, in)
	}
}

func pipe(from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	_ = to.Close()
	_ = from.Close()
}

// A NATS elsewhere than on loopback that lets in everybody, or speaks without TLS, is refused with one sentence that
// says what to do, unless that is waived (DESIGN D10).
func TestRefuse(t *testing.T) {
	t.Parallel()
	open := elsewhere(t, "")
	users := natsauth.Config([]natsauth.User{
		{Name: "gateway", Password: "secret", Permissions: natsauth.Of(natsauth.Gateway)},
	})
	closed := elsewhere(t, users, nats.UserInfo("gateway", "secret"))
	secure, access := secured(t, users)
	for name, c := range map[string]struct {
		conn     *nats.Conn
		settings natsconn.Settings
		want     string
	}{
		"open":             {open, natsconn.Settings{AllowPlaintext: true}, "CHANDLER_NATS_ALLOW_OPEN"},
		"open, waived":     {open, natsconn.Settings{AllowPlaintext: true, AllowOpen: true}, ""},
		"in clear":         {closed, natsconn.Settings{}, "CHANDLER_NATS_ALLOW_PLAINTEXT"},
		"with TLS":         {secure, access, ""},
		"in clear, waived": {closed, natsconn.Settings{AllowPlaintext: true}, ""},
	} {
		err := c.settings.Refuse(c.conn)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// On loopback a server may be as it is: development and tests.
func TestLoopbackIsTaken(t *testing.T) {
	t.Parallel()
	srv, err := natslocal.Start(context.Background(), natslocal.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	conn, err := nats.Connect(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if err := (&natsconn.Settings{}).Refuse(conn); err != nil {
		t.Errorf("port %s: %v", strconv.Quote(conn.ConnectedAddr()), err)
	}
}
