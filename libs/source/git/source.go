package git

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/archive"
	"github.com/chandler-fleet/chandler/libs/source/credential"
	"github.com/chandler-fleet/chandler/libs/source/internal/web"
)

// Source is a repository at a reference.
type Source struct {
	// URL is https://…, http://…, ssh://…, or user@host:path for SSH.
	URL string
	// Path is a repository on disk, instead of a URL.
	Path string
	// Reference is a branch, a tag, refs/… or a commit; "" is the remote's HEAD.
	Reference    string
	Subdirectory string
	Credentials  *credential.Set
	Insecure     bool
	// Temp is where it is unpacked.
	Temp   string
	Limits archive.Limits
	// Stall replaces the bound on a server's silence.
	Stall time.Duration
}

// Tree is a commit that was unpacked.
type Tree struct {
	*archive.Target

	// Fingerprint is that of Probe: what the server says that the reference points to. It is the
	// commit, but for servers that do not say which commit a tag names.
	Fingerprint string
	Commit      string
}

// reSCP is the short form of SSH.
var reSCP = regexp.MustCompile(`^(?:([^@/:]+)@)?([^/:@]+):([^@]+)$`)

// Probe returns the fingerprint of what the reference points to, which is its commit.
func Probe(ctx context.Context, s Source) (string, error) {
	var commit string
	err := s.with(ctx, func(r repository) error {
		p, err := r.find(ctx, s.Reference)
		commit = p.commit.String()
		return err
	})
	if err != nil {
		return "", err
	}
	return commit, nil
}

// Open fetches the commit and writes its files.
func Open(ctx context.Context, s Source) (*Tree, error) {
	var out *Tree
	err := s.with(ctx, func(r repository) error {
		p, err := r.find(ctx, s.Reference)
		if err != nil {
			return err
		}
		objects, done, err := r.objects(ctx, p)
		if err != nil {
			return err
		}
		target, commit, err := s.checkout(ctx, objects, p)
		if err = errors.Join(err, done()); err != nil {
			if target != nil {
				err = errors.Join(err, target.Close())
			}
			return err
		}
		out = &Tree{Target: target, Fingerprint: p.commit.String(), Commit: commit}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// repository is one end of git's protocol, or a directory.
type repository interface {
	find(ctx context.Context, reference string) (pointer, error)
	// objects makes what the pointer needs readable until done.
	objects(ctx context.Context, p pointer) (objects storer.EncodedObjectStorer, done func() error, err error)
	close() error
}

// pointer is what a reference points to.
type pointer struct {
	// want is what is asked for: the commit, or the tag that names it.
	want plumbing.Hash
	// commit is known if the server returns it.
	commit plumbing.Hash
	// advertised says that the server lists want itself.
	advertised bool
	// all is asked for instead, with all history, where a server gives nothing else.
	all []plumbing.Hash
}

// with opens the repository, and names it in errors.
func (s Source) with(ctx context.Context, do func(repository) error) error {
	r, err := s.dial(ctx)
	if err == nil {
		err = errors.Join(do(r), r.close())
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return web.About(err, "git repository %s", s.name())
}

func (s Source) dial(ctx context.Context) (repository, error) {
	if s.Path != "" {
		return openLocal(s.Path)
	}
	if !strings.Contains(s.URL, "://") {
		m := reSCP.FindStringSubmatch(s.URL)
		if m == nil {
			return nil, errs.New(errs.Invalid,
				"the URL cannot be used; write https://host/path or ssh://user@host/path")
		}
		return s.dialSSH(ctx, m[1], m[2], m[3])
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, errs.New(errs.Invalid, "the URL cannot be used")
	}
	switch u.Scheme {
	case "https", "http":
		return s.dialHTTP(u)
	case "ssh":
		return s.dialSSH(ctx, u.User.Username(), u.Host, u.Path)
	default:
		return nil, errs.New(errs.Invalid, "the URL has the scheme %q; want https or ssh", u.Scheme)
	}
}

// name is the URL without what may be a credential.
func (s Source) name() string {
	if s.Path != "" {
		return s.Path
	}
	return source.ShortURL(s.URL)
}
