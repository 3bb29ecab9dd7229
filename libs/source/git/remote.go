package git

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source/internal/web"
)

// maxAdvertisement bounds the list of references: MaxReferences of some 70 bytes each.
const maxAdvertisement = 64 << 20

// link carries git's protocol: its two halves are the same over HTTP and SSH.
type link interface {
	// advertisement is what the server says of itself and its references.
	advertisement(ctx context.Context) (io.ReadCloser, error)
	// request sends a request, and returns the answer.
	request(ctx context.Context, encode func(io.Writer) error) (io.ReadCloser, error)
	close() error
}

// remote is a repository at the other end of a link.
type remote struct {
	link
	s   Source
	adv *packp.AdvRefs
}

func (r *remote) find(ctx context.Context, reference string) (pointer, error) {
	body, err := r.advertisement(ctx)
	if err != nil {
		return pointer{}, err
	}
	r.adv = packp.NewAdvRefs()
	err = r.adv.Decode(body)
	err = errors.Join(err, body.Close())
	switch {
	case errors.Is(err, packp.ErrEmptyAdvRefs) || err == nil && len(r.adv.References) == 0 && r.adv.Head == nil:
		return pointer{}, errs.New(errs.NotFound, "the repository is empty")
	case err != nil:
		return pointer{}, protocol(err)
	case len(r.adv.References) > MaxReferences:
		return pointer{}, errs.New(errs.TooLarge, "it has %d references, more than %d", len(r.adv.References),
			MaxReferences)
	}
	refs := references{hashes: r.adv.References, peeled: r.adv.Peeled}
	if r.adv.Head != nil {
		refs.head = *r.adv.Head
	}
	return refs.find(reference)
}

// objects fetches one commit, without its history where the server can do so.
func (r *remote) objects(ctx context.Context, p pointer) (storer.EncodedObjectStorer, func() error, error) {
	caps := r.adv.Capabilities
	alone := p.advertised || caps.Supports(capability.AllowReachableSHA1InWant) ||
		supports(caps, "allow-any-sha1-in-want")
	req := packp.NewUploadPackRequest()
	for _, c := range []capability.Capability{capability.Sideband64k, capability.OFSDelta, capability.NoProgress} {
		if caps.Supports(c) {
			_ = req.Capabilities.Set(c) // fails for capabilities with arguments alone
		}
	}
	if caps.Supports(capability.Agent) {
		_ = req.Capabilities.Set(capability.Agent, "chandler") // as above
	}
	req.Wants = append(req.Wants, p.want)
	if !alone {
		req.Wants = p.all
	}
	if alone && caps.Supports(capability.Shallow) {
		_ = req.Capabilities.Set(capability.Shallow) // as above
		req.Depth = packp.DepthCommits(1)
	}
	answer, err := r.request(ctx, func(w io.Writer) error {
		if err := req.UploadRequest.Encode(w); err != nil {
			return err
		}
		return pktline.NewEncoder(w).EncodeString("done\n")
	})
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = answer.Close() }() // it was only read
	res := packp.NewUploadPackResponse(req)
	if err := res.Decode(answer); err != nil {
		return nil, nil, protocol(err)
	}
	var pack io.Reader = res
	if req.Capabilities.Supports(capability.Sideband64k) {
		pack = sideband.NewDemuxer(sideband.Sideband64k, res)
	}
	return r.s.store(ctx, pack)
}

func supports(l *capability.List, name string) bool {
	return l.Supports(capability.Capability(name))
}

// protocol gives an error of the conversation its kind.
func protocol(err error) error {
	var said *pktline.ErrorLine
	var odd *packp.ErrUnexpectedData
	switch {
	case errors.As(err, &said):
		return serverError(said.Text)
	case errors.As(err, &odd), errors.Is(err, pktline.ErrInvalidPktLen):
		return errs.New(errs.Invalid, "the server does not speak git's protocol")
	case strings.HasPrefix(err.Error(), "unexpected error: "):
		return serverError(strings.TrimPrefix(err.Error(), "unexpected error: "))
	case errors.Is(err, packp.ErrEmptyInput):
		return errs.New(errs.Unavailable, "the server ended without an answer")
	default:
		return web.Explain(err)
	}
}

// serverError is an error in the words of the server, cut to a line.
func serverError(text string) error {
	const most = 200
	text, _, _ = strings.Cut(strings.TrimSpace(strings.TrimPrefix(text, "ERR ")), "\n")
	if len(text) > most {
		text = text[:most] + "…"
	}
	kind := errs.Unavailable
	lower := strings.ToLower(text)
	switch {
	case strings.Contains(lower, "not found"), strings.Contains(lower, "not our ref"),
		strings.Contains(lower, "does not exist"), strings.Contains(lower, "not appear to be a git repository"):
		kind = errs.NotFound
	case strings.Contains(lower, "denied"), strings.Contains(lower, "not authorized"):
		kind = errs.Forbidden
	}
	return errs.New(kind, "the server says %q", text)
}
