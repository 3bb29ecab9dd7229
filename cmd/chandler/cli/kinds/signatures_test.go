package kinds

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestDescribeSignatures: who must sign, and what holds where a policy says nothing.
func TestDescribeSignatures(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]*model.CatalogSignatures{
		"":                  nil,
		"Signed by: 2 keys": {Keys: []string{"a", "b"}},
		"Signed by: 1 key, or /.*@b.test/ of https://i.test; Vouched for by: 1 of the logs of certificates, " +
			"1 of the transparency logs; Signed names: the name of the image, r.test/*": {
			Keys: []string{"a"}, MatchRepository: true, Repositories: []string{"r.test/*"},
			Identities: []model.CatalogIdentity{{Issuer: "https://i.test", SubjectRegexp: ".*@b.test"}},
		},
		"Signed by: a@b.test of https://i.test; Vouched for by: 2 of the timestamp authorities": {
			Identities:       []model.CatalogIdentity{{Issuer: "https://i.test", Subject: "a@b.test"}},
			SignedTimestamps: 2, LogEntries: new(int), CertificateLogs: new(int),
		},
	} {
		var out bytes.Buffer
		p := printer.NewPage(&out, time.Now)
		describeSignatures(p, s)
		if err := p.Flush(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			got = append(got, strings.Join(strings.Fields(line), " "))
		}
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("got %q, want %q", text, want)
		}
	}
}
