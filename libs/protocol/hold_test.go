package protocol_test

import (
	"crypto/ed25519"
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestReportSignature: what a session signed holds for its bytes, its subject and its key alone (DESIGN D7).
func TestReportSignature(t *testing.T) {
	t.Parallel()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := protocol.NewSession("s", key)
	ofHub, err := protocol.SignMessage("a.b", []byte("body"), key)
	if err != nil {
		t.Fatal(err)
	}
	signature := s.SignReport("a.b", []byte("body"))
	for name, c := range map[string]struct {
		subject, body, signature string
		key                      ed25519.PublicKey
		good                     bool
	}{
		"as signed":       {"a.b", "body", signature, s.PublicKey(), true},
		"another subject": {"a.c", "body", signature, s.PublicKey(), false},
		"another body":    {"a.b", "bodY", signature, s.PublicKey(), false},
		"another key":     {"a.b", "body", signature, other, false},
		"no signature":    {"a.b", "body", "", s.PublicKey(), false},
		"no key":          {"a.b", "body", signature, nil, false},
		"not base64":      {"a.b", "body", "!", s.PublicKey(), false},
		"a message of the hub with this key": {
			"a.b", "body", ofHub, s.PublicKey(), false,
		},
	} {
		err := protocol.VerifyReport(c.subject, []byte(c.body), c.signature, c.key)
		if (err == nil) != c.good || err != nil && !errs.Is(err, errs.Forbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s.Next() != 1 || s.Next() != 2 {
		t.Error("the numbers of reports do not count from 1")
	}
}

// TestReporterOf: the cluster by whose sessions a report is checked is that of its subject.
func TestReporterOf(t *testing.T) {
	t.Parallel()
	scope := protocol.Scope{Tenant: "t", ClusterID: "c", Namespace: "n"}
	for _, subject := range []string{protocol.ScopeReportSubject(scope), protocol.ClusterReportSubject("t", "c")} {
		if tenant, cluster, ok := protocol.ReporterOf(subject); !ok || tenant != "t" || cluster != "c" {
			t.Errorf("%s is of %q %q %v", subject, tenant, cluster, ok)
		}
	}
	for _, subject := range []string{
		"", "chandler.reports", "chandler.reports.t.c", "chandler.reports.t.c.x.y", "x.t.c.y",
	} {
		if _, _, ok := protocol.ReporterOf(subject); ok {
			t.Errorf("%q is taken for the subject of a report", subject)
		}
	}
}
