package registry

import (
	"bytes"
	"context"
	"errors"
	"io/fs"

	"golang.org/x/sync/errgroup"

	"github.com/chandler-fleet/chandler/libs/errs"
	api "github.com/chandler-fleet/chandler/libs/registryapi"
	"github.com/chandler-fleet/chandler/libs/source/internal/spool"
)

// Probe returns the fingerprint of what a server serves now.
func Probe(ctx context.Context, o Options) (fingerprint string, err error) {
	r, err := o.dial()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, r.conn.Close()) }()
	packages, err := r.heads(ctx)
	if err != nil {
		return "", err
	}
	l, err := r.list(ctx, packages, func(*api.Bundle) error { return nil })
	if err != nil {
		return "", err
	}
	return l.fingerprint()
}

// Open reads the whole catalog of a server. The tree is valid until it is closed.
func Open(ctx context.Context, o Options) (tree fs.FS, fingerprint string, closeTree func() error, err error) {
	r, err := o.dial()
	if err != nil {
		return nil, "", nil, err
	}
	defer func() { err = errors.Join(err, r.conn.Close()) }()
	s, err := spool.New(o.Dir, r.limits.bytes)
	if err != nil {
		return nil, "", nil, err
	}
	fingerprint, err = read(ctx, r, s)
	if err != nil {
		return nil, "", nil, errors.Join(err, s.Close())
	}
	return s.FS(), fingerprint, s.Close, nil
}

// read writes what a server says, and returns its fingerprint.
func read(ctx context.Context, r *reader, s *spool.Spool) (string, error) {
	packages, err := r.heads(ctx)
	if err != nil {
		return "", err
	}
	w := newWriter(s, packages, r.keep)
	l, err := r.list(ctx, packages, w.entry)
	if err != nil {
		return "", err
	}
	err = each(ctx, w.wanted, func(ctx context.Context, q *api.GetBundleRequest) error {
		return r.bundle(ctx, q, w.bundle)
	})
	if err != nil {
		return "", err
	}
	if err := r.settled(ctx, l); err != nil {
		return "", err
	}
	for _, p := range packages {
		if err := w.pkg(p, l.entries); err != nil {
			return "", err
		}
	}
	return l.fingerprint()
}

// bundle asks for one bundle. Where it is larger than what may be read several at a time, it is asked for
// again alone, so that memory holds one of them.
func (r *reader) bundle(ctx context.Context, q *api.GetBundleRequest, take func(*api.Bundle) error) error {
	b, err := ask(ctx, r, r.limits.listed, r.api.GetBundle, q)
	if errs.Is(err, errs.TooLarge) && r.limits.listed < r.limits.message && !r.crowded.Load() {
		r.large.Lock()
		defer r.large.Unlock()
		b, err = ask(ctx, r, r.limits.message, r.api.GetBundle, q)
	}
	switch {
	case err != nil:
		return err
	case b.GetCsvName() != q.GetCsvName() || b.GetPackageName() != q.GetPkgName():
		return r.torn("answered %q of package %q when asked for bundle %q of package %q", b.GetCsvName(),
			b.GetPackageName(), q.GetCsvName(), q.GetPkgName())
	}
	return take(b)
}

// settled returns an error where the server has another catalog now than when it was listed.
func (r *reader) settled(ctx context.Context, l *listing) error {
	now, err := r.heads(ctx)
	if err != nil {
		return err
	}
	before, err := sumHeads(l.packages)
	if err != nil {
		return err
	}
	after, err := sumHeads(now)
	if err != nil {
		return err
	}
	if !bytes.Equal(before, after) {
		return r.torn("changed its catalog while it was read; it is read again at the next poll")
	}
	return nil
}

// each does something for all items, a few at a time, until the first error.
func each[T any](ctx context.Context, items []T, do func(context.Context, T) error) error {
	g, own := errgroup.WithContext(ctx)
	g.SetLimit(asking)
	for _, item := range items {
		if own.Err() != nil {
			break
		}
		g.Go(func() error { return do(own, item) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}
