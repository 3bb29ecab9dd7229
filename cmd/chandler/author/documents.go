package author

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/fbc"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/digest"
)

// with opens a reference for the time of use.
func (t *sources) with(ctx context.Context, ref string, use func(*tree) error) (err error) {
	r, err := t.open(ctx, ref)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	return use(r)
}

// load understands a catalog; findings are not told yet. Keep may be nil.
func (t *sources) load(ctx context.Context, r *tree, o load.Options) (*load.Catalog, error) {
	o.Stop = ctx.Done()
	fsys, done := t.watched(r)
	defer done()
	return load.Load(fsys, o)
}

// valid loads a reference that must be a catalog without errors; those that it has are told.
func (t *tool) valid(ctx context.Context, r *tree) (*load.Catalog, error) {
	c, err := t.sources.load(ctx, r, load.Options{})
	if err != nil {
		return nil, err
	}
	return c, t.reportFindings(onlyErrors(c.Findings))
}

// documents calls each for every document that the tree holds or can be rendered to (R-CAT-58, R-CAT-62):
//
//	one bundle               its olm.bundle
//	documents only           these, in the order of files, one at a time
//	with bundle directories  the packages that they make together with the documents beside them
func (t *sources) documents(ctx context.Context, r *tree, each func(fbc.Blob) error) (catalog.Findings, error) {
	if r.bundle() {
		b, findings, err := renderBundle(r)
		if err != nil || b.Schema == "" {
			return findings, err
		}
		return findings, each(b)
	}
	if load.HasBundles(r.fs) {
		return t.packages(ctx, r, each)
	}
	fsys, done := t.watched(r)
	defer done()
	return fbc.Walk(fsys, func(b fbc.Blob) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return each(b)
	})
}

// renderBundle renders a tree that is one bundle. There is none where the findings have an error.
func renderBundle(r *tree) (fbc.Blob, catalog.Findings, error) {
	f, findings := load.ReadBundle(r.fs, r.labels, r.image)
	if findings.Errors() > 0 {
		return fbc.Blob{}, findings, nil
	}
	b, err := fbc.FromBundle(f)
	return b, findings, err
}

// packages renders what a catalog with bundle directories means. The manifests wait on disk meanwhile.
func (t *sources) packages(ctx context.Context, r *tree, each func(fbc.Blob) error) (
	findings catalog.Findings, err error,
) {
	content, err := newContents()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, content.remove()) }()
	c, err := t.load(ctx, r, load.Options{Keep: content.keep})
	if err != nil {
		return nil, err
	}
	for _, p := range c.Packages {
		for b, err := range fbc.Documents(p, content.get) {
			if err = cmp.Or(err, ctx.Err()); err == nil {
				err = each(b)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	for _, b := range c.Blobs {
		if err := each(fbc.FromBlob(b)); err != nil {
			return nil, err
		}
	}
	return c.Findings, nil
}

// contents keeps the manifests of bundles on disk, by digest.
type contents struct {
	dir    string
	remove func() error
}

func newContents() (*contents, error) {
	dir, remove, err := temporary()
	if err != nil {
		return nil, err
	}
	return &contents{dir, remove}, nil
}

func (c *contents) file(d digest.Digest) string { return filepath.Join(c.dir, d.Hex()) }

// keep writes content that was not met before. Two that write the same at once write the same bytes.
func (c *contents) keep(in load.Content) error {
	file := c.file(in.Digest)
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	return os.WriteFile(file, in.Canonical, 0o600)
}

func (c *contents) get(d digest.Digest) ([]byte, error) { return os.ReadFile(c.file(d)) }
