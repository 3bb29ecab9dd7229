package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
)

// TestMessagesLinkTheirRules: who reads the number of a rule reads how it is explained; a rule in words is its own
// explanation.
func TestMessagesLinkTheirRules(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		"R-OG-30": "error: no (at body.a, rule R-OG-30)\nWhat R-OG-30 demands: chandler rules R-OG-30\n",
		"one-of":  "error: no (at body.a, rule one-of)\n",
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(
				w, `{"title": "Bad Request", "detail": "no", "errors": [{"location": "body.a", "message": "no", "rule": "`+rule+`"}]}`)
		}))
		t.Cleanup(s.Close)
		var wrong strings.Builder
		streams := command.Streams{
			In: strings.NewReader(""), Out: io.Discard, Err: &wrong,
			Env: func(string) (string, bool) { return "", false },
		}
		Main(t.Context(), streams, []string{"--url", s.URL, "--token", "t", "get", "clusters"})
		if wrong.String() != want {
			t.Errorf("said %q, want %q", wrong.String(), want)
		}
	}
}
