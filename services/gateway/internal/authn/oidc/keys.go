package oidc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/reach"
)

const (
	// keysFresh is how often the keys of a provider are read. A key that the provider took back lives no longer here.
	keysFresh = 5 * time.Minute
	// keysLast is how long keys are believed while their provider is away: long enough for a night, and less than it
	// would take for a key that was stolen and taken back to be of use.
	keysLast = 24 * time.Hour
	// retryFetch is how soon a provider is asked again that did not answer.
	retryFetch = 10 * time.Second
	// fetchTimeout bounds one answer of a provider; a request may wait for it.
	fetchTimeout = 5 * time.Second
	// askBurst is how often tokens with an unknown key have a provider asked at once, askRate how often a second over a
	// time: such tokens can be made by anybody.
	askBurst, askRate = 5, 0.1
	// maxAnswerBytes bounds what a provider answers.
	maxAnswerBytes = 1 << 20
	// maxKeys bounds the keys of a provider. Those in use are few; each costs a look at every token without a key id.
	maxKeys = 50
)

// keys are those of one provider, as it said last.
type keys struct {
	provider Provider
	client   *http.Client
	now      func() time.Time
	log      *slog.Logger

	mu     sync.Mutex // of one fetch at a time: who waits for it has its result
	kept   sync.RWMutex
	list   []jose.JSONWebKey
	read   time.Time // when they were read; zero: never
	tokens float64   // of further questions
	filled time.Time // when tokens was counted
}

func newKeys(p Provider, now func() time.Time, log *slog.Logger) (*keys, error) {
	transport, err := transportOf(p)
	if err != nil {
		return nil, err
	}
	return &keys{
		provider: p, now: now, log: log, tokens: askBurst, filled: now(),
		client: &http.Client{
			Timeout: fetchTimeout, Transport: bounded{transport},
			CheckRedirect: func(r *http.Request, via []*http.Request) error {
				return reach.SafeRedirect(r.URL, len(via))
			},
		},
	}, nil
}

func transportOf(p Provider) (*http.Transport, error) {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if p.CAFile == "" {
		return t, nil
	}
	raw, err := os.ReadFile(p.CAFile)
	if err != nil {
		return nil, fmt.Errorf("setting oidc-providers: provider %s: %w", p.Name, err)
	}
	t.TLSClientConfig.RootCAs = x509.NewCertPool()
	if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(raw) {
		return nil, errs.New(errs.Invalid, "setting oidc-providers: provider %s: %s holds no certificate", p.Name, p.CAFile)
	}
	return t, nil
}

// bounded reads no more of an answer than is allowed.
type bounded struct{ next *http.Transport }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err //nolint:wrapcheck // the client wraps it
	}
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(answer.Body, maxAnswerBytes), answer.Body}
	return answer, nil
}

// keep reads the keys again and again, until ctx ends.
func (k *keys) keep(ctx context.Context) {
	for {
		wait := keysFresh
		if err := k.fetch(ctx, k.now()); err != nil && ctx.Err() == nil {
			wait = retryFetch
			k.log.WarnContext(ctx, "the keys of an identity provider cannot be read; those of before are believed for a while",
				"provider", k.provider.Name, "error", err)
		}
		next := time.NewTimer(wait)
		select {
		case <-next.C:
		case <-ctx.Done():
			next.Stop()
			return
		}
	}
}

// of returns the keys that may have signed a token with a key id. An id that is not known has the provider asked, since
// it may have a new key.
func (k *keys) of(ctx context.Context, id string) ([]jose.JSONWebKey, error) {
	asked := k.now()
	list, read := k.known(id)
	if len(list) > 0 && asked.Sub(read) < keysLast {
		return list, nil
	}
	err := k.ask(ctx, asked)
	if list, read = k.known(id); len(list) > 0 && asked.Sub(read) < keysLast {
		return list, nil
	}
	if err != nil || read.IsZero() || asked.Sub(read) >= keysLast {
		// No cause: what the network says is for the log alone, which keep writes.
		return nil, errs.New(errs.Unavailable, "the identity provider %s does not tell its keys, so that its tokens cannot "+
			"be checked: try again in a moment, or use a token of Chandler", k.provider.Name)
	}
	return nil, errs.New(errs.Unauthenticated, "the token is signed by a key that the identity provider %s does not have",
		k.provider.Name)
}

// known returns the keys with an id, all of them for none, and when they were read.
func (k *keys) known(id string) (list []jose.JSONWebKey, read time.Time) {
	k.kept.RLock()
	defer k.kept.RUnlock()
	for _, key := range k.list {
		if id == "" || key.KeyID == "" || key.KeyID == id {
			list = append(list, key)
		}
	}
	return list, k.read
}

// ask reads the keys, unless that was done too often, or somebody else has done it since.
func (k *keys) ask(ctx context.Context, asked time.Time) error {
	k.kept.Lock()
	now := k.now()
	k.tokens = min(askBurst, k.tokens+now.Sub(k.filled).Seconds()*askRate)
	k.filled = now
	may := k.tokens >= 1
	if may {
		k.tokens--
	}
	k.kept.Unlock()
	if !may {
		return nil
	}
	return k.fetch(ctx, asked)
}

// fetch reads the keys, unless they were read after a time.
func (k *keys) fetch(ctx context.Context, since time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, read := k.known(""); read.After(since) {
		return nil
	}
	// Who asked may go away meanwhile; the others wait for the same answer.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	at := k.now()
	list, err := k.discover(ctx)
	if err != nil {
		return err
	}
	k.kept.Lock()
	defer k.kept.Unlock()
	k.list, k.read = list, at
	return nil
}

// discover finds where the keys are, each time anew: a provider may move them.
func (k *keys) discover(ctx context.Context) ([]jose.JSONWebKey, error) {
	p, err := oidc.NewProvider(oidc.ClientContext(ctx, k.client), k.provider.Issuer)
	if err != nil {
		return nil, errs.Wrap(errs.Unavailable, err, "discover the identity provider %s", k.provider.Name)
	}
	var found struct {
		Keys string `json:"jwks_uri"`
	}
	if err := p.Claims(&found); err != nil {
		return nil, errs.Wrap(errs.Unavailable, err, "read the discovery of the identity provider %s", k.provider.Name)
	}
	if err := reach.SafeURL(found.Keys); err != nil {
		return nil, errs.Wrap(errs.Unavailable, err, "keys of the identity provider %s", k.provider.Name)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, found.Keys, http.NoBody)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "ask for keys")
	}
	answer, err := k.client.Do(r)
	if err != nil {
		return nil, errs.Wrap(errs.Unavailable, err, "read the keys of the identity provider %s", k.provider.Name)
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	var set jose.JSONWebKeySet
	if answer.StatusCode != http.StatusOK {
		return nil, errs.New(errs.Unavailable, "the keys of the identity provider %s: %s", k.provider.Name, answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(&set); err != nil {
		return nil, errs.Wrap(errs.Unavailable, err, "read the keys of the identity provider %s", k.provider.Name)
	}
	return signing(set.Keys), nil
}

// signing are the public keys that sign.
func signing(all []jose.JSONWebKey) (list []jose.JSONWebKey) {
	for _, key := range all {
		if key.Valid() && key.IsPublic() && (key.Use == "" || key.Use == "sig") && len(list) < maxKeys {
			list = append(list, key)
		}
	}
	return list
}
