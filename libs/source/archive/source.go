package archive

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/credential"
	"github.com/chandler-fleet/chandler/libs/source/dir"
	"github.com/chandler-fleet/chandler/libs/source/internal/web"
)

// Source is an archive at a path or at a URL.
type Source struct {
	Path, URL    string
	Subdirectory string
	// Credentials are shown to the host of the URL.
	Credentials *credential.Set
	Insecure    bool
	// Temp is where it is unpacked.
	Temp   string
	Limits Limits
}

// Tree is an archive that was unpacked.
type Tree struct {
	*Target

	// Fingerprint is that of Probe; if a server has none, the digest of the archive.
	Fingerprint string
	// Digest is that of the archive's bytes.
	Digest string
}

// Probe reads size and time of a file, or asks a server for them. "" means that the server tells
// neither an ETag nor a time.
func Probe(ctx context.Context, s Source) (string, error) {
	if s.URL == "" {
		return s.stat()
	}
	resp, err := s.get(ctx, http.MethodHead)
	if k := errs.KindOf(err); k == errs.Invalid || k == errs.Forbidden || k == errs.Unavailable && ctx.Err() == nil {
		// Some servers, and links that are signed for one method, take GET alone.
		resp, err = s.get(ctx, http.MethodGet)
	}
	if err != nil {
		return "", err
	}
	_ = resp.Body.Close() // nothing of it is wanted
	return validator(resp), nil
}

// Open fetches and unpacks the archive.
func Open(ctx context.Context, s Source) (*Tree, error) {
	body, fingerprint, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }() // it was only read
	t, err := NewTarget(s.Temp, s.Limits)
	if err != nil {
		return nil, err
	}
	sum := &hashing{r: body, h: sha256.New()}
	o := Options{}
	if s.Subdirectory != "" {
		o.Parts = []Part{{From: strings.Trim(s.Subdirectory, "/"), To: "."}}
	}
	err = Extract(ctx, sum, t, o)
	if err == nil {
		err = s.complete(t, fingerprint)
	}
	if err != nil {
		_ = t.Close() // the reason why there is no tree matters more
		return nil, s.about(err)
	}
	out := &Tree{Target: t, Fingerprint: fingerprint, Digest: string(digest.FromSum(sum.h.Sum(nil)))}
	if fingerprint == "" {
		out.Fingerprint = out.Digest
	}
	return out, nil
}

// hashing computes the digest of what is read.
type hashing struct {
	r io.Reader
	h hash.Hash
}

func (r *hashing) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.h.Write(p[:n])
	return n, err
}

// complete checks what can be known only after reading.
func (s Source) complete(t *Target, fingerprint string) error {
	if s.Subdirectory != "" && t.Empty() {
		return errs.New(errs.NotFound, "it holds no directory %q", s.Subdirectory).At("/subdirectory", "")
	}
	if s.URL != "" {
		return nil
	}
	if now, err := s.stat(); err != nil || now != fingerprint {
		return errs.New(errs.Unavailable, "it changed while it was read; it is read again")
	}
	return nil
}

func (s Source) open(ctx context.Context) (io.ReadCloser, string, error) {
	if s.URL != "" {
		resp, err := s.get(ctx, http.MethodGet)
		if err != nil {
			return nil, "", err
		}
		return resp.Body, validator(resp), nil
	}
	fingerprint, err := s.stat()
	if err != nil {
		return nil, "", err
	}
	f, err := os.Open(s.Path)
	if err != nil {
		return nil, "", errs.New(errs.NotFound, "archive %s cannot be opened: %s", s.Path, dir.Reason(err))
	}
	return f, fingerprint, nil
}

// stat refuses what would block: a pipe in the place of a file.
func (s Source) stat() (fingerprint string, err error) {
	info, err := os.Stat(s.Path)
	if err != nil {
		return "", errs.New(errs.NotFound, "archive %s cannot be opened: %s", s.Path, dir.Reason(err))
	}
	if !info.Mode().IsRegular() {
		return "", errs.New(errs.Invalid, "archive %s is no file; a source of type directory reads directories", s.Path)
	}
	return string(digest.Bytes(fmt.Appendf(nil, "file %d %d", info.Size(), info.ModTime().UnixNano()))), nil
}

// get asks the server; an answer without success is an error.
func (s Source) get(ctx context.Context, method string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.URL, http.NoBody)
	if err != nil {
		return nil, s.about(errs.New(errs.Invalid, "the URL cannot be used"))
	}
	req.Close = true                              // one request is all that is asked
	req.Header.Set("Accept-Encoding", "identity") // the archive as it is, not as a transport would unpack it
	o := web.Options{
		Host: req.URL.Host, Insecure: s.Insecure,
		Limit: func(*http.Request) int64 { return s.Limits.Compressed },
	}
	shown := false
	if c := s.Credentials; c != nil {
		o.Pool = c.Pool()
		switch {
		case c.Basic != nil:
			req.SetBasicAuth(c.Basic.Username, c.Basic.Password)
			shown = true
		case c.Token != "":
			req.Header.Set("Authorization", "Bearer "+c.Token)
			shown = true
		}
	}
	resp, err := web.Client(o).Do(req)
	if err != nil {
		return nil, s.about(web.Explain(err))
	}
	kind := web.Status(resp.StatusCode)
	if kind == "" {
		return resp, nil
	}
	_ = resp.Body.Close() // nothing of it is wanted
	switch {
	case kind == errs.Forbidden && shown:
		return nil, s.about(
			errs.New(kind, "the server refuses the credential (status %d); look at the secrets of the source",
				resp.StatusCode))
	case kind == errs.Forbidden:
		return nil, s.about(
			errs.New(kind,
				"the server asks for a credential (status %d); name a secret of kind basic or token in the source",
				resp.StatusCode))
	default:
		return nil, s.about(errs.New(kind, "the server answers with status %d", resp.StatusCode))
	}
}

// validator is what a server says of the state of a file.
func validator(resp *http.Response) string {
	if tag := resp.Header.Get("ETag"); tag != "" {
		return string(digest.Bytes([]byte("etag " + tag)))
	}
	if at := resp.Header.Get("Last-Modified"); at != "" {
		return string(digest.Bytes([]byte("modified " + at)))
	}
	return ""
}

// about names the archive in an error.
func (s Source) about(err error) error {
	if s.URL == "" {
		return web.About(err, "archive %s", s.Path)
	}
	return web.About(err, "archive %s", source.ShortURL(s.URL))
}
