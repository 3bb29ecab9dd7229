package signin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/chandler-fleet/chandler/cmd/chandler/ownfile"
	"github.com/chandler-fleet/chandler/libs/reach"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const (
	// loginTimeout bounds how long a person may take to sign in.
	loginTimeout = 10 * time.Minute
	// answerTimeout bounds one answer of a provider.
	answerTimeout = 30 * time.Second
	// refreshTimeout bounds how long a token may take to be replaced. Other commands wait for it, a little longer.
	refreshTimeout = ownfile.LockTimeout - time.Second
	// refreshBefore is how long before its end a token is replaced, so that a command can finish with it.
	refreshBefore = time.Minute
)

// Login signs somebody in.
type Login struct {
	With model.LoginProvider
	// Show tells the person where to sign in; code is "" where there is none to type.
	Show func(address, code string) error
	Now  func() time.Time
}

// session is a provider that was discovered.
type session struct {
	provider *oidc.Provider
	config   oauth2.Config
}

func discover(ctx context.Context, issuer, id, secret string, scopes []string) (*session, error) {
	if err := reach.SafeURL(issuer); err != nil {
		return nil, fmt.Errorf("the identity provider: %w", err)
	}
	p, err := oidc.NewProvider(ctx, issuer)
	if err != nil {
		return nil, fmt.Errorf("ask the identity provider %s: %w", issuer, err)
	}
	if err := safe(p); err != nil {
		return nil, fmt.Errorf("what the identity provider %s says of itself: %w", issuer, err)
	}
	return &session{p, oauth2.Config{ClientID: id, ClientSecret: secret, Endpoint: p.Endpoint(), Scopes: scopes}}, nil
}

// safe refuses a provider that has secrets sent, or pages opened, where somebody in between could answer.
func safe(p *oidc.Provider) error {
	var found struct {
		Keys string `json:"jwks_uri"`
	}
	if err := p.Claims(&found); err != nil {
		return err
	}
	e := p.Endpoint()
	for what, address := range map[string]string{
		"jwks_uri": found.Keys, "authorization_endpoint": e.AuthURL, "token_endpoint": e.TokenURL,
		"device_authorization_endpoint": e.DeviceAuthURL,
	} {
		if address == "" {
			continue // what needs it says so
		}
		if err := reach.SafeURL(address); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// show tells the person where to sign in. Other programs open the address: it is one of a page, and nothing else.
func (l Login) show(address, code string) error {
	if err := reach.SafeURL(address); err != nil {
		return fmt.Errorf("where the identity provider %s wants people to sign in: %w", l.With.Name, err)
	}
	return l.Show(address, code)
}

// client has every answer of a provider bounded in time, and comes from safe addresses.
func client(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, &http.Client{
		Timeout:       answerTimeout,
		CheckRedirect: func(r *http.Request, via []*http.Request) error { return reach.SafeRedirect(r.URL, len(via)) },
	})
}

// Browser signs in by a browser on this machine: the provider sends it back to a port of this program (authorization
// code with PKCE, RFC 7636 and 8252).
func (l Login) Browser(ctx context.Context) (Credential, error) {
	ctx, cancel := context.WithTimeout(client(ctx), loginTimeout)
	defer cancel()
	s, err := discover(ctx, l.With.Issuer, l.With.ClientID, l.With.ClientSecret, l.With.Scopes)
	if err != nil {
		return Credential{}, err
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return Credential{}, fmt.Errorf("listen for the browser: %w", err)
	}
	s.config.RedirectURL = "http://" + ln.Addr().String() + "/callback"
	state, nonce, verifier := rand.Text(), rand.Text(), oauth2.GenerateVerifier()
	back := make(chan answered, 1)
	server := &http.Server{Handler: callback(state, back), ReadHeaderTimeout: answerTimeout}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(ln) // it ends with the listener
	}()
	defer func() {
		// The browser reads the last page first. What goes wrong then concerns nobody.
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(stop)
		<-done
	}()
	address := s.config.AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier))
	if err := l.show(address, ""); err != nil {
		return Credential{}, err
	}
	select {
	case a := <-back:
		if a.err != nil {
			return Credential{}, a.err
		}
		t, err := s.config.Exchange(ctx, a.code, oauth2.VerifierOption(verifier))
		if err != nil {
			return Credential{}, fmt.Errorf("get a token of the identity provider: %w", err)
		}
		return l.credential(ctx, s, t, nonce)
	case <-ctx.Done():
		return Credential{}, errors.New("nobody signed in within ten minutes")
	}
}

type answered struct {
	code string
	err  error
}

// callback takes the first answer of the provider. One without the state is none of its.
func callback(state string, back chan<- answered) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) == 0 {
			http.Error(w, "This is no answer to chandler login.", http.StatusBadRequest)
			return
		}
		a, text := answered{code: q.Get("code")}, "You are signed in. You can close this page."
		if problem := q.Get("error"); problem != "" || a.code == "" {
			a.err = fmt.Errorf("the identity provider refuses: %s %s", problem, q.Get("error_description"))
			text = "The identity provider refuses: see the command line."
		}
		select {
		case back <- a:
		default: // it was answered before
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		// The browser may have gone; the command line has its answer.
		_, _ = fmt.Fprintln(w, text)
	})
	return mux
}

// Device signs in by a browser anywhere, in which the person types a code (RFC 8628).
func (l Login) Device(ctx context.Context) (Credential, error) {
	ctx, cancel := context.WithTimeout(client(ctx), loginTimeout)
	defer cancel()
	s, err := discover(ctx, l.With.Issuer, l.With.ClientID, l.With.ClientSecret, l.With.Scopes)
	if err != nil {
		return Credential{}, err
	}
	if s.config.Endpoint.DeviceAuthURL == "" {
		return Credential{}, fmt.Errorf("the identity provider %s knows no device code: leave out --device", l.With.Name)
	}
	d, err := s.config.DeviceAuth(ctx)
	if err != nil {
		return Credential{}, fmt.Errorf("get a device code of the identity provider: %w", err)
	}
	if err := l.show(d.VerificationURI, d.UserCode); err != nil {
		return Credential{}, err
	}
	t, err := s.config.DeviceAccessToken(ctx, d)
	if err != nil {
		return Credential{}, fmt.Errorf("get a token of the identity provider: %w", err)
	}
	return l.credential(ctx, s, t, "")
}

// credential takes the ID token out of an answer, once it is the provider's, for this program and for this sign-in.
func (l Login) credential(ctx context.Context, s *session, t *oauth2.Token, nonce string) (Credential, error) {
	c := Credential{
		Provider: l.With.Name, Issuer: l.With.Issuer, ClientID: l.With.ClientID, ClientSecret: l.With.ClientSecret,
	}
	err := c.take(ctx, s, t, nonce, l.Now)
	return c, err
}

func (c *Credential) take(
	ctx context.Context, s *session, t *oauth2.Token, nonce string, now func() time.Time,
) error {
	raw, ok := t.Extra("id_token").(string)
	if !ok {
		return errors.New("the identity provider gave no ID token: the scope openid is missing, or not allowed")
	}
	checked, err := s.provider.Verifier(&oidc.Config{ClientID: c.ClientID, Now: now}).Verify(ctx, raw)
	if err != nil {
		return fmt.Errorf("the token of the identity provider: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(checked.Nonce), []byte(nonce)) == 0 && nonce != "" {
		return errors.New("the token of the identity provider is for another sign-in")
	}
	if c.Subject != "" && c.Subject != checked.Subject { // OpenID Connect Core 12.2
		return errors.New("the token of the identity provider is for somebody else than before")
	}
	c.Token, c.Subject, c.Ends = raw, checked.Subject, checked.Expiry
	if t.RefreshToken != "" {
		c.Refresh = t.RefreshToken
	}
	return nil
}

// Token is the token for an address of Chandler; "" where nobody signed in. One that ends soon is replaced.
func Token(ctx context.Context, s Store, url string, now func() time.Time) (string, error) {
	if token, good, err := current(s, url, now); good || err != nil {
		return token, err
	}
	// Commands that run at once would all send the refresh token, which many providers take once: sent again, it ends
	// the whole sign-in. The first replaces it, the others find what it got.
	unlock, err := s.lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	if token, good, err := current(s, url, now); good || err != nil {
		return token, err
	}
	c, _, err := s.Get(url)
	if err != nil {
		return "", err
	}
	if c.Refresh == "" {
		return "", errors.New("your sign-in has ended: chandler login")
	}
	if err := c.refresh(ctx, now); err != nil {
		return "", fmt.Errorf("your sign-in has ended (%w): chandler login", err)
	}
	return c.Token, s.changeLocked(put(url, &c))
}

// current is the token that is kept; good is false where it ends soon.
func current(s Store, url string, now func() time.Time) (token string, good bool, err error) {
	c, found, err := s.Get(url)
	return c.Token, !found || now().Add(refreshBefore).Before(c.Ends), err
}

func (c *Credential) refresh(ctx context.Context, now func() time.Time) error {
	ctx, cancel := context.WithTimeout(client(ctx), refreshTimeout)
	defer cancel()
	session, err := discover(ctx, c.Issuer, c.ClientID, c.ClientSecret, nil)
	if err != nil {
		return err
	}
	t, err := session.config.TokenSource(ctx, &oauth2.Token{RefreshToken: c.Refresh}).Token()
	if err != nil {
		return err
	}
	return c.take(ctx, session, t, "", now)
}
