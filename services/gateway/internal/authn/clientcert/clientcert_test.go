package clientcert_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/certtest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/internal/authn/clientcert"
)

// house has one authority, or two.
type house struct {
	t                *testing.T
	dir              string
	v                *clientcert.Verifier
	said             bytes.Buffer
	machines, others *certtest.Authority
	now              time.Time
}

func (h *house) file(name, text string) string {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// setup makes authorities machines and others, the first with further settings.
func setup(t *testing.T, more string) *house {
	t.Helper()
	h := &house{
		t: t, dir: t.TempDir(), machines: certtest.NewAuthority(t), others: certtest.NewAuthority(t), now: time.Now(),
	}
	text := fmt.Sprintf("authorities:\n- {name: machines, caFile: %s%s}\n- {name: others, caFile: %s, tenant: acme, "+
		"groupsPrefix: 'x/'}\n", h.file("machines.pem", h.machines.PEM()), more, h.file("others.pem", h.others.PEM()))
	list, err := clientcert.ReadFile(h.file("authorities.yaml", text))
	if err != nil {
		t.Fatal(err)
	}
	h.v, err = clientcert.New(list, func() time.Time { return h.now }, slog.New(slog.NewTextHandler(&h.said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// shown is a certificate as a connection shows it.
func shown(t *testing.T, a *certtest.Authority, change func(*x509.Certificate)) []*x509.Certificate {
	t.Helper()
	certificate, key := a.IssueAs(t, func(c *x509.Certificate) {
		c.Subject = pkix.Name{CommonName: "ci", Organization: []string{"pipelines", "bad\x01name", "builders"}}
		if change != nil {
			change(c)
		}
	})
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return []*x509.Certificate{pair.Leaf}
}

// TestMachineOfAnAuthority: the common name is the machine and organizations are its groups, as with Kubernetes; each
// authority has its own tenant, prefix and machines.
func TestMachineOfAnAuthority(t *testing.T) {
	t.Parallel()
	h := setup(t, "")
	p, err := h.v.Verify(shown(t, h.machines, nil))
	if err != nil || p.Tenant != "default" || p.Kind != "ServiceAccount" || p.Subject != "ci" ||
		p.Provider != "machines" || p.Name != "ci" ||
		!slices.Equal(p.Groups, []string{"machines:builders", "machines:pipelines"}) {
		t.Errorf("got %+v, %v", p, err)
	}
	if strings.Contains(p.Issuer, "://") {
		t.Errorf("a provider could have the issuer %q", p.Issuer)
	}
	o, err := h.v.Verify(shown(t, h.others, nil))
	if err != nil || o.Tenant != "acme" || o.Issuer == p.Issuer || o.Groups[0] != "x/builders" {
		t.Errorf("got %+v, %v", o, err)
	}
	soon := h.now.Add(time.Minute).Truncate(time.Second)
	p, err = h.v.Verify(shown(t, h.machines, func(c *x509.Certificate) { c.NotAfter = soon }))
	if err != nil || !p.Until.Equal(soon) {
		t.Errorf("it ends at %s, want %s: %v", p.Until, soon, err)
	}
}

// TestCertificatesThatLetNobodyIn: each with the reason.
func TestCertificatesThatLetNobodyIn(t *testing.T) {
	t.Parallel()
	h := setup(t, "")
	for name, c := range map[string]struct {
		by     *certtest.Authority
		change func(*x509.Certificate)
		want   string
	}{
		"of a stranger": {certtest.NewAuthority(t), nil, "no authority"},
		"ended": {h.machines, func(c *x509.Certificate) {
			c.NotAfter = h.now.Add(-time.Minute)
		}, "it ended at"},
		"not yet good": {h.machines, func(c *x509.Certificate) {
			c.NotBefore = h.now.Add(time.Minute)
		}, "not good before"},
		"of a server": {h.machines, func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}, "not for clients"},
		"of no usage":    {h.machines, func(c *x509.Certificate) { c.ExtKeyUsage = nil }, "not for clients"},
		"without a name": {h.machines, func(c *x509.Certificate) { c.Subject.CommonName = "" }, "names no machine"},
		"a long name": {h.machines, func(c *x509.Certificate) {
			c.Subject.CommonName = strings.Repeat("x", 256)
		}, "more than 255 characters"},
		"many groups": {h.machines, func(c *x509.Certificate) {
			c.Subject.Organization = nil
			for i := range 501 {
				c.Subject.Organization = append(c.Subject.Organization, fmt.Sprint(i))
			}
		}, "501 groups"},
	} {
		if _, err := h.v.Verify(shown(t, c.by, c.change)); !errs.Is(err, errs.Unauthenticated) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

// TestManyCertificatesAreRefused: a stranger who shows dozens of authorities of one name does not have each of their
// signatures checked.
func TestManyCertificatesAreRefused(t *testing.T) {
	t.Parallel()
	h := setup(t, "")
	many := shown(t, certtest.NewAuthority(t), nil)
	for range 8 {
		between, _ := pem.Decode([]byte(certtest.NewAuthority(t).PEM()))
		c, err := x509.ParseCertificate(between.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		many = append(many, c)
	}
	_, err := h.v.Verify(many[:8])
	if !errs.Is(err, errs.Unauthenticated) || !strings.Contains(err.Error(), "no authority") {
		t.Errorf("with seven: %v", err)
	}
	_, err = h.v.Verify(many)
	if !errs.Is(err, errs.Unauthenticated) || !strings.Contains(err.Error(), "9 certificates") {
		t.Errorf("with eight: %v", err)
	}
}

// TestAuthoritiesAreReplaced: another certificate of an authority counts from the next request on, and the one before
// no more; while the file cannot be used what was read before counts, which is told once.
func TestAuthoritiesAreReplaced(t *testing.T) {
	t.Parallel()
	h := setup(t, "")
	next := certtest.NewAuthority(t)
	old, renewed := shown(t, h.machines, nil), shown(t, next, nil)
	good := func(what string, certificate []*x509.Certificate, want bool) {
		t.Helper()
		if _, err := h.v.Verify(certificate); (err == nil) != want {
			t.Errorf("%s: %v", what, err)
		}
	}
	good("of the next one", renewed, false)
	h.file("machines.pem", h.machines.PEM()+next.PEM())
	good("old, beside the next one", old, true)
	good("of the next one, beside the old one", renewed, true)
	h.file("machines.pem", "half a file")
	good("while it cannot be read", renewed, true)
	good("while it cannot be read", old, true)
	if n := strings.Count(h.said.String(), "cannot be used"); n != 1 {
		t.Errorf("told %d times: %s", n, h.said.String())
	}
	h.file("machines.pem", next.PEM())
	good("old, after it was taken out", old, false)
	good("of the next one alone", renewed, true)
}

// TestRevokedCertificates: what a list names is refused from the next request on. A list that ended, or is signed by
// another authority, says nothing, and then nobody is let in.
func TestRevokedCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "revoked.pem")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(certtest.NewAuthority(t).Revoke(t, time.Now().Add(time.Hour)))
	h := setup(t, ", revocationFile: "+path)
	seven := shown(t, h.machines, func(c *x509.Certificate) { c.SerialNumber = big.NewInt(7) })
	for _, c := range []struct{ name, list, want string }{
		{"a list of others", "", "no list of revoked certificates"},
		{"an empty list", h.machines.Revoke(t, h.now.Add(time.Hour)), ""},
		{"a list of another one", h.machines.Revoke(t, h.now.Add(time.Hour), 8), ""},
		{"a list with it", h.machines.Revoke(t, h.now.Add(time.Hour), 8, 7), "it was revoked"},
		{"a list that ended", h.machines.Revoke(t, h.now.Add(-time.Minute)), "no list of revoked certificates"},
	} {
		if c.list != "" {
			write(c.list)
		}
		_, err := h.v.Verify(seven)
		if c.want == "" && err != nil || c.want != "" && (!errs.Is(err, errs.Unauthenticated) ||
			!strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
	// What has changed since another list is no list: whoever was revoked before is not in it.
	write(h.machines.Revoke(t, h.now.Add(time.Hour), 7))
	if _, err := h.v.Verify(seven); err == nil {
		t.Error("a certificate that was revoked is let in")
	}
	write(h.machines.RevokeAs(t, h.now.Add(time.Hour), []pkix.Extension{
		{Id: asn1.ObjectIdentifier{2, 5, 29, 27}, Critical: true, Value: []byte{2, 1, 1}},
	}))
	if _, err := h.v.Verify(seven); err == nil || !strings.Contains(h.said.String(), "for some certificates alone") {
		t.Errorf("by a list of what has changed: %v; told %s", err, h.said.String())
	}
	if _, err := h.v.Verify(shown(t, h.others, nil)); err != nil {
		t.Errorf("of an authority that keeps no lists: %v", err)
	}
}

// TestBadAuthorities: settings that would let in the wrong machines, with their place.
func TestBadAuthorities(t *testing.T) {
	t.Parallel()
	h := setup(t, "")
	machines := filepath.Join(h.dir, "machines.pem")
	good := "authorities:\n- {name: a, caFile: " + machines + "}\n"
	certificate, key := h.machines.Issue(t, "127.0.0.1")
	withKey, leaf := h.file("key.pem", h.machines.PEM()+key), h.file("leaf.pem", certificate)
	for name, c := range map[string]struct{ text, want string }{
		"none":              {"authorities: []\n", "has 0 authorities"},
		"no name":           {strings.Replace(good, "name: a", "name: ''", 1), "name"},
		"no file":           {"authorities: [{name: a}]\n", "caFile"},
		"an unknown field":  {strings.Replace(good, "}", ", insecure: true}", 1), "insecure"},
		"the same name":     {good + "- {name: a, caFile: x, groupsPrefix: 'b:'}\n", "that of another"},
		"groups of another": {good + "- {name: b, caFile: x, groupsPrefix: 'a:b'}\n", "taken for"},
		"a missing file":    {strings.Replace(good, machines, "nowhere.pem", 1), "nowhere.pem"},
		"a key":             {strings.Replace(good, machines, withKey, 1), "PRIVATE KEY"},
		"of a server":       {strings.Replace(good, machines, leaf, 1), "none of an authority"},
		"no lists": {
			strings.Replace(good, "}", ", revocationFile: "+machines+"}", 1), "X509 CRL is wanted",
		},
	} {
		list, err := clientcert.ReadFile(h.file("bad.yaml", c.text))
		if err == nil {
			_, err = clientcert.New(list, time.Now, slog.New(slog.DiscardHandler))
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}
