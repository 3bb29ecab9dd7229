// Package access gets into a cluster by tokens that end: it makes the account that the hub uses there with the
// credential of a person (Bootstrap), asks for the next token with the present one (Request), and has clients use
// whichever is the newest (Source). What the account may do is clusteraccess's to say.
package access

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/services/installer/clusteraccess"
)

// Source is the token that clients of one cluster use. It changes while they do: connections, watches and the lease go
// on.
type Source struct {
	now func() time.Time

	mu       sync.Mutex
	text     string
	token    clusteraccess.Token
	obtained time.Time
}

// NewSource returns a source of the token of a configuration; ok is false where the configuration has no token of the
// account that Bootstrap makes.
func NewSource(c *rest.Config, now func() time.Time) (s *Source, ok bool) {
	t, ok := clusteraccess.Parse(c.BearerToken)
	if !ok {
		return nil, false
	}
	return &Source{now: now, text: c.BearerToken, token: t}, true
}

// Config returns the configuration with the source in the place of a token.
func (s *Source) Config(c *rest.Config) *rest.Config {
	out := rest.CopyConfig(c)
	out.BearerToken = ""
	out.Wrap(func(next http.RoundTripper) http.RoundTripper { return carrier{source: s, next: next} })
	return out
}

// Set has clients use another token from now on. obtained is when it was asked for, zero for one that was found stored.
func (s *Source) Set(text string, t clusteraccess.Token, obtained time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text, s.token, s.obtained = text, t, obtained
}

// Token is what is used now.
func (s *Source) Token() clusteraccess.Token {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token
}

// Due is when the next token is to be asked for.
func (s *Source) Due() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token.Due(s.obtained)
}

// carrier puts the token into each request.
type carrier struct {
	source *Source
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper. An answer that the token is not taken becomes an error that says why, and
// what to do.
func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	c.source.mu.Lock()
	text, token := c.source.text, c.source.token
	c.source.mu.Unlock()
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+text)
	answer, err := c.next.RoundTrip(r)
	if err != nil || answer.StatusCode != http.StatusUnauthorized {
		return answer, err
	}
	_ = answer.Body.Close() // what it says is not needed
	return nil, clusteraccess.RefusedError{
		Expires: token.Expires, Ended: !c.source.now().Before(token.Expires),
	}
}
