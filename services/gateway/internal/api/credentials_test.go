package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/internal/authn"
)

// FuzzCredentials: whatever stands in the headers, the answer is one token of bounded length for each, or that nobody
// is recognised. A header for a person that stands there is never passed over.
func FuzzCredentials(f *testing.F) {
	for _, s := range []string{
		"", "Bearer", "Bearer ", "bearer x", "Basic x", "Bearer a b", "Bearer \x00", "Bearer ey.a.b",
	} {
		f.Add("Bearer token", s, false)
		f.Add(s, "Bearer person", true)
	}
	f.Fuzz(func(t *testing.T, own, person string, twice bool) {
		r := &http.Request{Header: http.Header{"Authorization": {own}, authn.HeaderOnBehalfOf: {person}}}
		if twice {
			r.Header.Add(authn.HeaderOnBehalfOf, person)
		}
		shown, err := credentials(r)
		if err != nil {
			if !errs.Is(err, errs.Unauthenticated) {
				t.Errorf("%q, %q: %v", own, person, err)
			}
			return
		}
		for _, token := range []string{shown.Bearer, shown.OnBehalfOf} {
			if token == "" || len(token) > authn.MaxBearerChars || token != strings.TrimSpace(token) {
				t.Errorf("%q, %q: token %q", own, person, token)
			}
		}
		if twice {
			t.Errorf("%q stands there twice", person)
		}
	})
}
