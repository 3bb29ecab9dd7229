// Package opener is the one door to catalog sources: whatever their type, it has a cheap look (Probe)
// and a file tree for libs/catalog (Open, and Bundle for the bundle images that a catalog names).
//
// Errors have the kinds by which a caller decides what to do next: errs.Unavailable is transient (a
// stall, a network, a server's own fault), errs.NotFound what is not there, errs.Forbidden a credential
// that is missing or refused, errs.TooLarge a named limit, errs.Invalid what a person must mend. Their
// sentences name the source and what was asked of it, and never a credential.
package opener

import (
	"context"
	"io/fs"
	"slices"
	"sync"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/oci"
)

// Opener opens sources. Its fields are set before the first use and not changed afterwards; all methods
// may be called at the same time.
type Opener struct {
	// Root, where set, is the directory that all paths must lie in; relative paths start there.
	Root string
	// Cache is a directory for what is unpacked and for blobs that are fetched again; "" means the
	// system's directory for temporary files, and no blobs are kept.
	Cache string
	// Mirrors are the installation's own, tried after those of a source.
	Mirrors []source.Mirror
	// Secrets finds a credential by its name; nil means that there are none.
	Secrets func(ctx context.Context, name string) (source.Secret, error)

	blobs sync.Once
	cache *oci.Cache
}

// Probe is what a cheap look at a source finds.
type Probe struct {
	// Fingerprint equals that of the Tree which Open would return, as long as nothing changed. It is ""
	// where the source does not tell without being read.
	Fingerprint string
	// Resolved is what a reference stands for, such as an image by digest or a commit; "" where the
	// source has no such thing.
	Resolved string
}

// Tree is what a source holds. It must be closed.
type Tree struct {
	FS          fs.FS
	Fingerprint string
	Resolved    string
	// Labels are those of an image.
	Labels map[string]string

	close   []func() error
	settled func(context.Context) error
}

// Close gives back what the tree holds on disk and on the network.
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

// Settled is asked after reading: an error of kind errs.Unavailable says that the source changed
// meanwhile, so that what was read is to be dropped. Sources that were copied cannot change.
func (t *Tree) Settled(ctx context.Context) error {
	if t.settled == nil {
		return nil
	}
	return t.settled(ctx)
}

// Probe looks at a source without reading its content.
func (o *Opener) Probe(ctx context.Context, t source.Type, s source.Settings) (Probe, error) {
	return look(ctx, t, s, o.probe)
}

// Open reads a source. A templated image must have been resolved before (source.Resolve).
func (o *Opener) Open(ctx context.Context, t source.Type, s source.Settings) (*Tree, error) {
	return look(ctx, t, s, o.open)
}

// Bundle reads a bundle image that a catalog names, with the credentials and the mirrors of the catalog's
// source (R-DIS-4): the tree has manifests and metadata at its root. A reference by digest is verified
// against it. An OCI layout that the catalog came from is looked into first.
func (o *Opener) Bundle(ctx context.Context, image string, s source.Settings) (*Tree, error) {
	return within(ctx, s, "bundle image "+image, func(ctx context.Context) (
		*Tree, error,
	) {
		return o.bundle(ctx, image, s)
	})
}

// look runs one look at a source. Settings are checked again: they may be older than the rules.
func look[T any](ctx context.Context, t source.Type, s source.Settings,
	do func(context.Context, source.Type, source.Settings) (T, error),
) (T, error) {
	if v := source.Check(t, s); len(v) > 0 {
		var none T
		return none, errs.New(errs.Invalid, "settings of the catalog source: %s", v[0].Message).At(
			v[0].Field, v[0].Rule)
	}
	return within(ctx, s, Name(t, s), func(ctx context.Context) (T, error) { return do(ctx, t, s) })
}

// within bounds a look by the timeout of the settings.
func within[T any](ctx context.Context, s source.Settings, name string, do func(context.Context) (T, error)) (
	T, error,
) {
	timeout := source.TimeoutOf(s)
	bounded, cancel := context.WithTimeoutCause(ctx, timeout,
		errs.New(errs.Unavailable,
			"%s: the look did not end within %s; it is tried again, and timeout in the settings of the source gives "+
				"it longer", name, timeout))
	defer cancel()
	out, err := do(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		var none T
		return none, context.Cause(bounded)
	}
	return out, err
}

// Name says in a few words which source is meant.
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
