package git

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source/internal/web"
)

const (
	service  = "git-upload-pack"
	infoRefs = "/info/refs"
)

// overHTTP is git's smart protocol over HTTP.
type overHTTP struct {
	client *http.Client
	base   *url.URL
	auth   func(*http.Request)
	shown  bool
}

func (s Source) dialHTTP(u *url.URL) (repository, error) {
	u.User, u.Path = nil, strings.TrimSuffix(u.Path, "/")
	h := &overHTTP{base: u, auth: func(*http.Request) {}}
	o := web.Options{Host: u.Host, Insecure: s.Insecure, Stall: s.Stall, Limit: func(req *http.Request) int64 {
		if strings.HasSuffix(req.URL.Path, infoRefs) {
			return maxAdvertisement
		}
		return s.Limits.Compressed
	}}
	if c := s.Credentials; c != nil {
		o.Pool = c.Pool()
		switch {
		case c.Basic != nil:
			h.shown, h.auth = true, func(r *http.Request) { r.SetBasicAuth(c.Basic.Username, c.Basic.Password) }
		case c.Token != "":
			h.shown, h.auth = true, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+c.Token) }
		}
	}
	h.client = web.Client(o)
	return &remote{link: h, s: s}, nil
}

func (h *overHTTP) close() error {
	h.client.CloseIdleConnections()
	return nil
}

func (h *overHTTP) advertisement(ctx context.Context) (io.ReadCloser, error) {
	u := *h.base
	u.Path += infoRefs
	u.RawQuery = "service=" + service
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, errs.New(errs.Invalid, "the URL cannot be used")
	}
	resp, err := h.do(req)
	if err != nil {
		return nil, err
	}
	if t := resp.Header.Get("Content-Type"); t != "application/x-"+service+"-advertisement" {
		_ = resp.Body.Close() // nothing of it is wanted
		return nil, errs.New(errs.Invalid,
			"the server answers with %q, and so is none of git's smart protocol; look at the URL", cut(t))
	}
	// A repository that has moved is asked at its new place from here on.
	if moved, ok := strings.CutSuffix(resp.Request.URL.Path, infoRefs); ok {
		h.base = &url.URL{Scheme: resp.Request.URL.Scheme, Host: resp.Request.URL.Host, Path: moved}
	}
	return resp.Body, nil
}

func cut(s string) string {
	const most = 100
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

func (h *overHTTP) request(ctx context.Context, encode func(io.Writer) error) (io.ReadCloser, error) {
	var b bytes.Buffer
	if err := encode(&b); err != nil {
		return nil, errs.Wrap(errs.Internal, err, "write a request of git's protocol")
	}
	u := *h.base
	u.Path += "/" + service
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), &b)
	if err != nil {
		return nil, errs.New(errs.Invalid, "the URL cannot be used")
	}
	req.Header.Set("Content-Type", "application/x-"+service+"-request")
	req.Header.Set("Accept", "application/x-"+service+"-result")
	resp, err := h.do(req)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

func (h *overHTTP) do(req *http.Request) (*http.Response, error) {
	h.auth(req)
	req.Header.Set("User-Agent", "git/chandler") // some servers answer git alone
	resp, err := h.client.Do(req)
	if err != nil {
		return nil, web.Explain(err)
	}
	kind := web.Status(resp.StatusCode)
	if kind == "" {
		return resp, nil
	}
	_ = resp.Body.Close() // nothing of it is wanted
	switch {
	case kind == errs.Forbidden && h.shown:
		return nil, errs.New(kind, "the server refuses the credential (status %d); look at the secrets of the source",
			resp.StatusCode)
	case kind == errs.Forbidden:
		return nil, errs.New(kind,
			"the server asks for a credential (status %d); name a secret of kind basic or token in the source",
			resp.StatusCode)
	default:
		return nil, errs.New(kind, "the server answers with status %d", resp.StatusCode)
	}
}
