package oci

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/credential"
	"github.com/chandler-fleet/chandler/libs/source/internal/web"
)

// maxAnswer bounds answers that are neither manifest nor blob: tokens and error texts.
const maxAnswer = 1 << 20

// registry is a repository of a registry.
type registry struct {
	repo   name.Repository
	client *http.Client
	idle   func() // closes what is idle: the transports in between do not pass it on
	cache  *Cache
	login  credential.Login
	known  bool // login holds one
	names  string
}

// dial opens a repository: it asks the registry how it wants to be asked.
func dial(ctx context.Context, s Source, ref source.Reference) (*registry, error) {
	o := []name.Option{name.StrictValidation}
	own := s.Named.settled(web.Hostname(ref.Host))
	// What a catalog names for itself is asked without TLS only where its settings have no other host that
	// this could be meant for.
	plain := s.Insecure && (own || len(s.Named.Hosts) == 0)
	if plain {
		o = append(o, name.Insecure)
	}
	repo, err := name.NewRepository(ref.Name(), o...)
	if err != nil {
		return nil, errs.New(errs.Invalid, "the name of the repository cannot be used: %s", err)
	}
	r := &registry{repo: repo, cache: s.Cache}
	options := web.Options{
		Host: repo.RegistryStr(), TokenService: true, Insecure: plain, Stall: s.Stall,
		Limit: answerLimit(s.Limits.Compressed),
	}
	if !own {
		options.Content, options.Origin = true, s.Named.Origin
	}
	auth := authn.Anonymous
	if c := s.Credentials; c != nil {
		options.Pool = c.Pool()
		r.names = c.DockerNames()
		if r.login, r.known = c.For(ref.Host, ref.Repository); r.known {
			auth = authn.FromConfig(authn.AuthConfig{
				Username: r.login.Username, Password: r.login.Password,
				IdentityToken: r.login.IdentityToken, RegistryToken: r.login.RegistryToken,
			})
		}
	}
	client := web.Client(options)
	r.idle = (&http.Client{Transport: client.Transport}).CloseIdleConnections
	// A registry behind a load balancer fails now and then for a moment; more is left to the next poll.
	client.Transport = transport.NewRetry(client.Transport,
		transport.WithRetryStatusCodes(http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout))
	client.Transport, err = transport.NewWithContext(ctx, repo.Registry, auth, client.Transport,
		[]string{repo.Scope(transport.PullScope)})
	if err != nil {
		r.idle()
		return nil, r.explain(err)
	}
	r.client = client
	return r, nil
}

// answerLimit bounds the answers of a registry by what was asked for.
func answerLimit(blob int64) func(*http.Request) int64 {
	return func(req *http.Request) int64 {
		switch {
		case strings.Contains(req.URL.Path, "/manifests/"), strings.Contains(req.URL.Path, "/referrers/"):
			return MaxManifest
		case strings.Contains(req.URL.Path, "/blobs/"):
			return blob
		default: // tokens, and what a registry says of itself
			return maxAnswer
		}
	}
}

var acceptable = strings.Join([]string{
	string(types.OCIManifestSchema1), string(types.OCIImageIndex),
	string(types.DockerManifestSchema2), string(types.DockerManifestList),
}, ", ")

func (r *registry) ask(ctx context.Context, method, kind, what string) (*http.Response, error) {
	u := url.URL{Scheme: r.repo.Scheme(), Host: r.repo.RegistryStr(), Path: "/v2/" + r.repo.RepositoryStr() + "/" +
		kind + "/" + what}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), http.NoBody)
	if err != nil {
		return nil, r.explain(err)
	}
	if kind != "blobs" {
		req.Header.Set("Accept", acceptable)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, r.explain(err)
	}
	if err := transport.CheckError(resp, http.StatusOK); err != nil {
		_ = resp.Body.Close() // nothing more is in it
		return nil, r.explain(err)
	}
	return resp, nil
}

// head asks for the digest alone, and for the manifest if the registry does not return it.
func (r *registry) head(ctx context.Context, reference string) (string, error) {
	sum, err := r.digestHeader(ctx, reference)
	if k := errs.KindOf(err); isDigest(sum) || err != nil && k != errs.Invalid && k != errs.NotFound {
		return sum, err
	}
	_, _, sum, err = checked(ctx, r, reference)
	return sum, err
}

// digestHeader is the digest that a registry names without the manifest.
func (r *registry) digestHeader(ctx context.Context, reference string) (string, error) {
	resp, err := r.ask(ctx, http.MethodHead, "manifests", reference)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }() // it has none
	return resp.Header.Get("Docker-Content-Digest"), nil
}

func (r *registry) manifest(ctx context.Context, reference string) ([]byte, string, error) {
	return r.document(ctx, "manifests", reference)
}

// referrers asks as the distribution specification says, and where a registry knows nothing of that, for the tag under
// which tools keep such a list then. More than its first page is not asked for.
func (r *registry) referrers(ctx context.Context, sum string) ([]byte, error) {
	raw, mediaType, err := r.document(ctx, "referrers", sum)
	if err == nil && strings.HasPrefix(mediaType, string(types.OCIImageIndex)) || errs.Is(err, errs.Unavailable) {
		return raw, err
	}
	raw, _, err = r.manifest(ctx, referrersTag(sum))
	return raw, err
}

// document reads a manifest or a list of them.
func (r *registry) document(ctx context.Context, kind, what string) ([]byte, string, error) {
	resp, err := r.ask(ctx, http.MethodGet, kind, what)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	raw, err := io.ReadAll(io.LimitReader(resp.Body, MaxManifest+1))
	switch {
	case err != nil:
		return nil, "", r.explain(err)
	case len(raw) > MaxManifest:
		return nil, "", errs.New(errs.TooLarge, "the manifest has more than %d bytes", MaxManifest)
	}
	return raw, resp.Header.Get("Content-Type"), nil
}

func (r *registry) blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	fetch := func() (io.ReadCloser, error) {
		//nolint:bodyclose // who reads the blob closes it
		resp, err := r.ask(ctx, http.MethodGet, "blobs", d.Digest.String())
		if err != nil {
			return nil, err
		}
		return &explained{resp.Body, r}, nil
	}
	if r.cache == nil {
		return fetch()
	}
	return r.cache.open(r.repo.Name(), d, fetch)
}

// explained gives the errors of a transfer their kind.
type explained struct {
	io.ReadCloser

	r *registry
}

func (e *explained) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = e.r.explain(err)
	}
	return n, err
}

// explain gives an error of the registry its kind and says how to fix it.
func (r *registry) explain(err error) error {
	status, ok := errors.AsType[*transport.Error](err)
	if !ok {
		return web.Explain(err)
	}
	switch kind := web.Status(status.StatusCode); {
	case kind == errs.Forbidden && r.known:
		return errs.New(kind, "the registry refuses the credential of secret %s (status %d)", r.login.Secret,
			status.StatusCode)
	case kind == errs.Forbidden && r.names != "":
		return errs.New(kind, "the registry asks for a credential (status %d), and secret %s has none for %s",
			status.StatusCode, r.names, r.repo.Name())
	case kind == errs.Forbidden:
		return errs.New(kind,
			"the registry asks for a credential (status %d); store a docker configuration that has one as a secret, "+
				"and name it in secrets", status.StatusCode)
	case kind == errs.NotFound:
		return errs.New(kind, "the registry does not have it (status %d)", status.StatusCode)
	case kind == "":
		return errs.New(errs.Invalid, "the registry answers with status %d, which is none of its protocol",
			status.StatusCode)
	default:
		return errs.New(kind, "the registry answers with status %d", status.StatusCode)
	}
}
