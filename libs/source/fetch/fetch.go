// Package fetch reads catalog sources of every type. Probe finds out cheaply whether a source has changed; Open returns
// its content as a file tree; Bundle does so for a bundle image that a catalog names.
//
// The kind of an error tells the caller what to do next: errs.Unavailable is transient (a timeout, the network, a fault
// of the server), errs.NotFound means that it does not exist, errs.Forbidden that a credential is missing or refused,
// errs.TooLarge that a named limit is exceeded, errs.Invalid that a person has to change something. Messages name the
// source and the request, never a credential.
package fetch

import (
	"context"
	"io/fs"
	"slices"
	"sync"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/oci"
)

// Fetcher reads sources. Its fields are set before the first use and not changed afterwards; all methods
// may be called at the same time.
type Fetcher struct {
	// Root, if set, is the directory that must contain all paths; relative paths start there.
	Root string
	// Cache is the directory for unpacked sources and for blobs of registries. If it is "", sources are unpacked in
	// the system's directory for temporary files, and blobs are not kept.
	Cache string
	// Mirrors are the installation's own, tried after those of a source.
	Mirrors []source.Mirror
	// Secrets finds a credential by its name; nil means that there are none.
	Secrets func(ctx context.Context, name string) (source.Secret, error)

	blobs sync.Once
	cache *oci.Cache
}

// Probe is the result of a probe.
type Probe struct {
	// Fingerprint equals that of the Tree that Open returns, as long as nothing has changed. It is "" if only
	// reading the source can show that.
	Fingerprint string
	// Resolved is what a reference points to, such as an image by digest or a commit; "" for sources without
	// references.
	Resolved string
}

// Tree is the content of a source. It must be closed.
type Tree struct {
	FS          fs.FS
	Fingerprint string
	Resolved    string
	// Labels are those of an image.
	Labels map[string]string
	// Evidence is what an image with a signature policy is checked again by (oci.ReadEvidence); nil where it is too
	// large.
	Evidence []byte

	close   []func() error
	settled func(context.Context) error
}

// Close removes the temporary files of the tree and closes its connections.
func (t *Tree) Close() error {
	var first error
	for _, end := range slices.Backward(t.close) {
		if err := end(); first == nil {
			first = err
		}
	}
	t.close = nil
	return first
}

// Settled is called after the tree was read. An error of kind errs.Unavailable means that the source changed
// meanwhile, and that what was read must be discarded. Sources that were copied cannot change.
func (t *Tree) Settled(ctx context.Context) error {
	if t.settled == nil {
		return nil
	}
	return t.settled(ctx)
}

// Probe finds out whether a source has changed, without reading its content.
func (f *Fetcher) Probe(ctx context.Context, t source.Type, s source.Settings) (Probe, error) {
	return run(ctx, t, s, f.probe)
}

// Open reads a source. A templated image must have been resolved before (source.Resolve).
func (f *Fetcher) Open(ctx context.Context, t source.Type, s source.Settings) (*Tree, error) {
	return run(ctx, t, s, f.open)
}

// Bundle reads a bundle image that a catalog names, with the credentials and the mirrors of the catalog's
// source (R-DIS-4): the tree has manifests and metadata at its root. A reference by digest is verified
// against it. If the catalog came from an OCI layout, the image is searched there first.
func (f *Fetcher) Bundle(ctx context.Context, image string, s source.Settings) (*Tree, error) {
	return within(ctx, s, "bundle image "+image, func(ctx context.Context) (
		*Tree, error,
	) {
		return f.bundle(ctx, image, s)
	})
}

// run runs a probe or a read of a source. Settings are checked again: they may be older than the rules.
func run[T any](ctx context.Context, t source.Type, s source.Settings,
	do func(context.Context, source.Type, source.Settings) (T, error),
) (T, error) {
	if v := source.Check(t, s); len(v) > 0 {
		var none T
		return none, errs.New(errs.Invalid, "settings of the catalog source: %s", v[0].Message).At(
			v[0].Field, v[0].Rule)
	}
	return within(ctx, s, Name(t, s), func(ctx context.Context) (T, error) { return do(ctx, t, s) })
}

// within bounds do by the timeout of the settings.
func within[T any](ctx context.Context, s source.Settings, name string, do func(context.Context) (T, error)) (
	T, error,
) {
	timeout := source.TimeoutOf(s)
	bounded, cancel := context.WithTimeoutCause(ctx, timeout,
		errs.New(errs.Unavailable,
			"%s: the read did not end within %s; it is tried again. A larger timeout in the settings of the source "+
				"gives it more time", name, timeout))
	defer cancel()
	out, err := do(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		var none T
		return none, context.Cause(bounded)
	}
	return out, err
}

// Name describes a source in a few words, for messages.
func Name(t source.Type, s source.Settings) string {
	switch {
	case s.Image != "":
		return "catalog image " + s.Image
	case s.Template != "":
		return "catalog image " + s.Template
	case t == source.Git:
		return "git repository " + source.ShortURL(s.URL)
	case t == source.Image:
		return "OCI layout " + s.Path
	case s.URL != "":
		return "archive " + source.ShortURL(s.URL)
	case s.Address != "":
		return "catalog server " + s.Address
	case s.ConfigMap != nil:
		return "config map " + s.ConfigMap.Namespace + "/" + s.ConfigMap.Name
	default:
		return string(t) + " " + s.Path
	}
}
