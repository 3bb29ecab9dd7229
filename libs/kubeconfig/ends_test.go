package kubeconfig_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/certtest"
	"github.com/chandler-fleet/chandler/libs/kubeconfig"
)

// When a credential ends is what its token or its certificate says, the sooner of both; whatever else stands there says
// nothing.
func TestEnds(t *testing.T) {
	t.Parallel()
	certificate, key := certtest.NewAuthority(t).Issue(t)
	soon, late := time.Now().Add(time.Hour).Truncate(time.Second), time.Now().Add(1000*time.Hour).Truncate(time.Second)
	tomorrow := time.Now().Add(24 * time.Hour)
	jwt := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	expires := func(at time.Time) string { return jwt(fmt.Sprintf(`{"exp":%d}`, at.Unix())) }
	none := time.Time{}
	for name, c := range map[string]struct {
		token     string
		with      bool // the certificate, which ends tomorrow
		wantAbout time.Time
	}{
		"token":                     {token: expires(soon), wantAbout: soon},
		"certificate":               {with: true, wantAbout: tomorrow},
		"the token is sooner":       {token: expires(soon), with: true, wantAbout: soon},
		"the certificate is sooner": {token: expires(late), with: true, wantAbout: tomorrow},
		"a fraction":                {token: jwt(fmt.Sprintf(`{"exp":%d.5}`, soon.Unix())), wantAbout: soon},
		"a token without end":       {token: jwt(`{"sub":"x"}`), wantAbout: none},
		"no JWT":                    {token: "abc", wantAbout: none},
		"no base64":                 {token: "a.*.c", wantAbout: none},
		"no JSON":                   {token: jwt(`x`), wantAbout: none},
		"an end that is no number":  {token: jwt(`{"exp":"soon"}`), wantAbout: none},
		"beyond the calendar":       {token: jwt(`{"exp":1e300}`), wantAbout: none},
		"before the calendar":       {token: jwt(`{"exp":-5}`), wantAbout: none},
	} {
		user := fmt.Sprintf(`{"token": %q}`, c.token)
		if c.with {
			encode := base64.StdEncoding.EncodeToString
			user = fmt.Sprintf(`{"token": %q, "client-certificate-data": %q, "client-key-data": %q}`, c.token,
				encode([]byte(certificate)), encode([]byte(key)))
		}
		raw := strings.ReplaceAll(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
			"clusters": [{"name": "k", "cluster": {"server": "https://k.example.com"}}],
			"users": [{"name": "u", "user": USER}],
			"contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}]}`, "USER", user)
		config, err := kubeconfig.Load([]byte(raw))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := config.Ends()
		if got.IsZero() != c.wantAbout.IsZero() || got.Sub(c.wantAbout).Abs() > time.Minute {
			t.Errorf("%s: ends at %s, want %s", name, got, c.wantAbout)
		}
	}
}
