package oci

import (
	"context"
	"errors"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/internal/web"
)

// content marks an error that every mirror would have: its blobs were what they should be.
type content struct{ error }

func (c content) Unwrap() error { return c.error }

// each tries one place after another where the image may be had.
func (s Source) each(ctx context.Context, try func(st store, reference string) error) error {
	if s.Layout != "" {
		return s.fromLayout(try)
	}
	candidates, err := source.Candidates(s.Image, s.Mirrors...)
	if err != nil {
		return err
	}
	var failed []failure
	for _, c := range candidates {
		err := s.one(ctx, c, try)
		if err == nil {
			return nil
		}
		failed = append(failed, failure{c, err})
		if _, ok := errors.AsType[content](err); ok || ctx.Err() != nil {
			break
		}
	}
	return s.failed(failed)
}

func (s Source) one(ctx context.Context, candidate string, try func(st store, reference string) error) error {
	ref, err := source.ParseReference(candidate)
	if err != nil {
		return err
	}
	r, err := dial(ctx, s, ref)
	if err != nil {
		return err
	}
	defer r.idle()
	reference := ref.Digest
	if reference == "" {
		reference = ref.Tag
	}
	return try(r, reference)
}

func (s Source) fromLayout(try func(st store, reference string) error) error {
	l, err := openLayout(s.Layout)
	if err == nil {
		err = errors.Join(try(l, s.Reference), l.close())
	}
	return web.About(err, "OCI layout %s", s.Layout)
}

// failure is what was wrong at one place.
type failure struct {
	at  string
	err error
}

// failed is the error of all places. Its kind is transient where any of them may get well by
// itself, else that of the last place, which is the image's own registry.
func (s Source) failed(failed []failure) error {
	last := failed[len(failed)-1]
	if len(failed) == 1 && last.at == s.Image {
		return web.About(last.err, "image %s", s.Image)
	}
	kind := errs.KindOf(last.err)
	for _, f := range failed {
		if errs.Is(f.err, errs.Unavailable) {
			kind = errs.Unavailable
		}
	}
	return errs.Wrap(kind, failures(failed), "image %s cannot be had from any place", s.Image)
}

// failures are the causes of all places.
type failures []failure

// Error names each place.
func (f failures) Error() string {
	texts := make([]string, 0, len(f))
	for _, one := range f {
		texts = append(texts, one.at+": "+one.err.Error())
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the causes.
func (f failures) Unwrap() []error {
	out := make([]error, 0, len(f))
	for _, one := range f {
		out = append(out, one.err)
	}
	return out
}

// resolved is the reference by digest, by the image's own name whichever mirror answered.
func (s Source) resolved(sum string) string {
	ref, err := source.ParseReference(s.Image)
	if err != nil || sum == "" {
		return sum
	}
	return ref.Name() + "@" + sum
}

// name is the repository by which the image is named, whichever mirror answers; "" for none.
func (s Source) name() string {
	ref, err := source.ParseReference(s.Image)
	if err != nil {
		return ""
	}
	return ref.Name()
}
