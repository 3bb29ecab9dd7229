package fetch

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/archive"
	"github.com/chandler-fleet/chandler/libs/source/dir"
	"github.com/chandler-fleet/chandler/libs/source/internal/web"
	"github.com/chandler-fleet/chandler/libs/source/oci"
	"github.com/chandler-fleet/chandler/libs/source/sqlite"
)

// blobCache returns the cache that all reads share, or nil if no directory is set for it.
func (f *Fetcher) blobCache() *oci.Cache {
	f.blobs.Do(func() {
		if f.Cache != "" {
			f.cache = &oci.Cache{Dir: filepath.Join(f.Cache, blobsDir)}
		}
	})
	return f.cache
}

func (f *Fetcher) fromRegistry(at env, image string, s source.Settings) oci.Source {
	return oci.Source{
		Image: image, Mirrors: [][]source.Mirror{s.Mirrors, f.Mirrors}, Credentials: at.secrets, Insecure: s.Insecure,
		Temp: at.temp, Limits: archive.Standard(), Cache: f.blobCache(), Signatures: s.Signatures,
	}
}

func (f *Fetcher) imageSource(at env, s source.Settings) (oci.Source, error) {
	image := s.Image
	if s.Template != "" {
		// Without variables it needs no cluster; with some, the caller has put what it resolved to in Image.
		switch names, err := source.Variables(s.Template); {
		case err == nil && len(names) == 0:
			image = s.Template
		case image == "":
			return oci.Source{}, errs.New(errs.Invalid,
				"the template %s of the catalog image was not resolved, and there is no image to fall back to",
				s.Template).At("/template", source.RuleTemplate)
		}
	}
	out := f.fromRegistry(at, image, s)
	out.Layout, out.Reference, out.Subdirectory = at.path, s.Reference, s.Subdirectory
	return out, nil
}

// image unpacks a catalog image; the database of a legacy one is read as a source of type sqlite is.
func (f *Fetcher) image(ctx context.Context, at env, s source.Settings) (*Tree, error) {
	img, err := f.imageSource(at, s)
	if err != nil {
		return nil, err
	}
	tree, err := oci.Open(ctx, img)
	if err != nil {
		return nil, err
	}
	out := unpacked(tree)
	if tree.Database == "" {
		return out, nil
	}
	fsys, _, end, err := sqlite.Open(ctx, sqlite.Options{Path: tree.Database, Dir: at.temp})
	if err != nil {
		return nil, errs.Wrap(errs.KindOf(err), errors.Join(err, out.Close()), "database of %s", Name(source.Image, s))
	}
	out.FS = fsys
	out.close = append(out.close, end)
	return out, nil
}

func unpacked(tree *oci.Tree) *Tree {
	return &Tree{
		FS: tree.FS(), Fingerprint: tree.Digest, Resolved: tree.Resolved, Labels: tree.Labels,
		Evidence: tree.Evidence, close: []func() error{tree.Close},
	}
}

func (f *Fetcher) bundle(ctx context.Context, image string, s source.Settings) (*Tree, error) {
	ref, err := source.ParseReference(image)
	if err != nil {
		return nil, err
	}
	path := s.Path
	s.Path = "" // the catalog's path, which may not exist any more
	at, err := f.env(ctx, s)
	if err != nil {
		return nil, err
	}
	img := f.fromRegistry(at, image, s)
	img.Named, img.Evidence = f.named(s), oci.MaxBundleEvidence
	if path, err := dir.Resolve(f.Root, path); err == nil && isLayout(path) {
		inLayout := img
		inLayout.Layout, inLayout.Reference = path, image
		if ref.Digest != "" {
			inLayout.Reference = ref.Digest
		}
		tree, err := oci.Bundle(ctx, inLayout)
		if err == nil {
			return unpacked(tree), nil
		}
		if !errs.Is(err, errs.NotFound) {
			return nil, err
		}
	}
	tree, err := oci.Bundle(ctx, img)
	if err != nil {
		return nil, err
	}
	return unpacked(tree), nil
}

// named gathers the hosts that administrators have named for a catalog: its source and the mirrors.
func (f *Fetcher) named(s source.Settings) *oci.Named {
	n := &oci.Named{Origin: origin(s)}
	if n.Origin != "" {
		n.Hosts = append(n.Hosts, n.Origin)
	}
	for _, list := range [][]source.Mirror{s.Mirrors, f.Mirrors} {
		for _, m := range list {
			for _, to := range m.Mirrors {
				host, _, _ := strings.Cut(to, "/")
				n.Hosts = append(n.Hosts, web.Hostname(host))
			}
		}
	}
	return n
}

// origin is the host that a source is read from, "" for a disk.
func origin(s source.Settings) string {
	switch {
	case s.Image != "" || s.Template != "":
		host, _, _ := strings.Cut(cmp.Or(s.Image, s.Template), "/")
		return web.Hostname(host)
	case s.Address != "":
		return web.Hostname(s.Address)
	case s.ConfigMap != nil: // its server is named in a secret, and is never the registry
		return "cluster.invalid"
	case strings.Contains(s.URL, "://"):
		if u, err := url.Parse(s.URL); err == nil {
			return u.Hostname()
		}
		return "url.invalid" // matches no host; "" would mean a disk
	case s.URL != "":
		host, _, _ := strings.Cut(s.URL[strings.LastIndexByte(s.URL, '@')+1:], ":")
		return host
	default:
		return ""
	}
}

func isLayout(path string) bool {
	_, err := os.Stat(filepath.Join(path, "oci-layout"))
	return err == nil
}
