package certs_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
)

var (
	start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	hosts = []string{"buoy-service.ops", "buoy-service.ops.svc", "buoy-service.ops.svc.cluster.local"}
)

func keys(t *testing.T) certs.Keys {
	t.Helper()
	draw := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		fatal(t, err)
		return k
	}
	return certs.Keys{CA: draw(), Serving: draw()}
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func issue(t *testing.T, now time.Time, former []byte) certs.Certificate {
	t.Helper()
	c, err := certs.Issue(now, hosts, keys(t), former)
	fatal(t, err)
	return c
}

// trust reports whether a client that trusts ca accepts the server's certificate at a time, under a host name.
func trust(t *testing.T, c certs.Certificate, ca []byte, now time.Time, host string) error {
	t.Helper()
	pair, err := tls.X509KeyPair(c.Cert, c.Key)
	fatal(t, err)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		t.Fatal("no CA")
	}
	client, server := net.Pipe()
	defer func() { fatal(t, client.Close()) }()
	go func() {
		defer func() { _ = server.Close() }() // the client has its answer
		_ = tls.Server(server, &tls.Config{
			Certificates: []tls.Certificate{pair},
			MinVersion:   tls.VersionTLS12,
		}).HandshakeContext(t.Context())
	}()
	return tls.Client(client, &tls.Config{
		RootCAs: pool, ServerName: host, MinVersion: tls.VersionTLS12,
		Time: func() time.Time { return now },
	}).
		HandshakeContext(t.Context())
}

// TestIssue: R-CSV-40: 730 days, the Service's host names, renewal one day before the end; the same keys and time
// give the same certificate.
func TestIssue(t *testing.T) {
	t.Parallel()
	k := keys(t)
	c, err := certs.Issue(start, hosts, k, nil)
	fatal(t, err)
	again, err := certs.Issue(start, hosts, k, nil)
	fatal(t, err)
	if diff := cmp.Diff(c, again); diff != "" {
		t.Errorf("not deterministic:\n%s", diff)
	}
	for _, h := range hosts {
		fatal(t, trust(t, c, c.CA, start, h))
	}
	if err := trust(t, c, c.CA, start, "buoy-service.other.svc"); err == nil {
		t.Error("trusted under a foreign name")
	}
	end := start.Add(730 * 24 * time.Hour)
	fatal(t, trust(t, c, c.CA, end.Add(-time.Second), hosts[0]))
	if err := trust(t, c, c.CA, end.Add(time.Second), hosts[0]); err == nil {
		t.Error("trusted after its end")
	}
	updated, rotate := c.Times()
	if !updated.Equal(start) || !rotate.Equal(end.Add(-24*time.Hour)) {
		t.Errorf("made %s, to be renewed %s", updated, rotate)
	}
	if got := certs.FromData(c.Data()); !got.Equal(c) {
		t.Error("data of the Secret reads back as another certificate")
	}
	if h := c.Hash(); len(h) != 64 || h == issue(t, start, nil).Hash() {
		t.Errorf("hash %s", h)
	}
}

// TestRenewal: while pods are replaced, the new CA text trusts what the former one signed; a CA that has
// expired, or one before the former, is left out.
func TestRenewal(t *testing.T) {
	t.Parallel()
	former := issue(t, start, nil)
	later := start.Add(729 * 24 * time.Hour)
	next := issue(t, later, former.CA)
	fatal(t, trust(t, former, next.CA, later, hosts[0]))
	fatal(t, trust(t, next, next.CA, later, hosts[0]))
	if n := bytes.Count(next.CA, []byte("BEGIN")); n != 2 {
		t.Errorf("%d CAs after the first renewal", n)
	}
	if n := bytes.Count(issue(t, later, next.CA).CA, []byte("BEGIN")); n != 2 {
		t.Errorf("%d CAs after the second renewal", n)
	}
	if n := bytes.Count(issue(t, start.Add(731*24*time.Hour), former.CA).CA, []byte("BEGIN")); n != 1 {
		t.Errorf("%d CAs, one of them expired", n)
	}
}

// TestFault: what makes a certificate one to be made anew at once; one that is only due still serves.
func TestFault(t *testing.T) {
	t.Parallel()
	c, other := issue(t, start, nil), issue(t, start, nil)
	due := start.Add(729 * 24 * time.Hour)
	for name, d := range map[string]struct {
		c     certs.Certificate
		now   time.Time
		hosts []string
		want  string
		due   bool
	}{
		"good":        {c: c, now: start, hosts: hosts},
		"not yet due": {c: c, now: due.Add(-time.Second), hosts: hosts},
		"due":         {c: c, now: due, hosts: hosts, due: true},
		"expired":     {c: c, now: due.Add(25 * time.Hour), hosts: hosts, want: "expired", due: true},
		"missing":     {now: start, hosts: hosts, want: "no certificate", due: true},
		"no PEM": {
			c: certs.Certificate{CA: []byte("x"), Cert: []byte("y"), Key: c.Key}, now: start,
			hosts: hosts, want: "no certificate", due: true,
		},
		"no certificate": {c: certs.Certificate{
			CA: c.CA, Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE"}),
			Key: c.Key,
		}, now: start, hosts: hosts, want: "no certificate", due: true},
		"foreign key": {
			c: certs.Certificate{CA: c.CA, Cert: c.Cert, Key: other.Key}, now: start, hosts: hosts,
			want: "key is not the one",
		},
		"foreign CA": {
			c: certs.Certificate{CA: other.CA, Cert: c.Cert, Key: c.Key}, now: start, hosts: hosts,
			want: "unknown authority",
		},
		"other hosts": {c: c, now: start, hosts: hosts[:1], want: "other hosts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := d.c.Problem(d.now, d.hosts)
			if (got == "") != (d.want == "") || !strings.Contains(got, d.want) {
				t.Errorf("fault %q, want %q", got, d.want)
			}
			if got := d.c.Due(d.now); got != d.due {
				t.Errorf("due %v, want %v", got, d.due)
			}
		})
	}
}

// TestPresses: R-CSV-50: a certificate that is due waits for the end of an upgrade for half a day, and no longer.
func TestPresses(t *testing.T) {
	t.Parallel()
	c, due := issue(t, start, nil), start.Add(729*24*time.Hour)
	for after, want := range map[time.Duration]bool{
		0: false, 12*time.Hour - time.Second: false, 12 * time.Hour: true,
		25 * time.Hour: true,
	} {
		if got := c.Overdue(due.Add(after)); got != want {
			t.Errorf("%s after it was due: %v", after, got)
		}
	}
}

// TestJudge: the rows of R-CSV §6.3 about owned API services, as Judge lists them.
func TestJudge(t *testing.T) {
	t.Parallel()
	well := certs.API{
		Name: "v1.wave.test", Found: true, CA: []byte("ca"), Target: "ops/server:443", Available: true,
		Since: start, ServiceFound: true,
	}
	want := certs.Want{CA: []byte("ca"), Target: "ops/server:443", Running: true}
	with := func(change func(*certs.API, *certs.Want)) (certs.API, certs.Want) {
		a, w := well, want
		change(&a, &w)
		return a, w
	}
	away := func(a *certs.API, _ *certs.Want) { a.Available, a.Message = false, "no endpoints" }
	for name, c := range map[string]struct {
		change func(*certs.API, *certs.Want)
		after  time.Duration
		want   string
	}{
		"available": {func(*certs.API, *certs.Want) {}, 0, ""},
		"no APIService": {
			func(a *certs.API, _ *certs.Want) { *a = certs.API{Name: a.Name} }, 0,
			"wrong: APIService v1.wave.test is not there",
		},
		"another's": {
			func(a *certs.API, _ *certs.Want) { a.Target = "dock/x:443" }, 0,
			"wrong: APIService v1.wave.test leads to dock/x:443, not to ops/server:443",
		},
		"another CA": {
			func(a *certs.API, _ *certs.Want) { a.CA = nil }, 0,
			"wrong: APIService v1.wave.test trusts another CA",
		},
		"no Service": {
			func(a *certs.API, _ *certs.Want) { a.ServiceFound = false }, 0,
			"wrong: the Service behind APIService v1.wave.test is not there",
		},
		"not yet asked": {func(a *certs.API, _ *certs.Want) {
			a.Available, a.Since = false,
				time.Time{}
		}, time.Hour, "waiting: API service v1.wave.test was not asked yet"},
		"pods do not run": {
			func(a *certs.API, w *certs.Want) { away(a, w); w.Running = false },
			time.Hour, "waiting: API service v1.wave.test is not available: no endpoints",
		},
		"short disruption": {
			away, time.Minute - time.Second,
			"waiting: API service v1.wave.test is not available: no endpoints",
		},
		"long, though its pods run": {
			away, time.Minute,
			"broken: API service v1.wave.test is not available: no endpoints",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, w := with(c.change)
			v := certs.Judge(start.Add(c.after), a, w)
			got := ""
			for kind, text := range map[string]string{"wrong": v.Wrong, "waiting": v.Waiting, "broken": v.Broken} {
				if text != "" {
					got += kind + ": " + text
				}
			}
			if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
