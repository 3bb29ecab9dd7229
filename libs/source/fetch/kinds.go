package fetch

import (
	"context"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/archive"
	"github.com/chandler-fleet/chandler/libs/source/configmap"
	"github.com/chandler-fleet/chandler/libs/source/credential"
	"github.com/chandler-fleet/chandler/libs/source/dir"
	"github.com/chandler-fleet/chandler/libs/source/git"
	"github.com/chandler-fleet/chandler/libs/source/oci"
	"github.com/chandler-fleet/chandler/libs/source/registry"
	"github.com/chandler-fleet/chandler/libs/source/sqlite"
)

// Directories below Fetcher.Cache.
const (
	workDir  = "work"
	blobsDir = "blobs"
)

// env is what reading a source needs besides its settings.
type env struct {
	secrets *credential.Set
	temp    string
	path    string // Path of the settings, resolved
}

func (f *Fetcher) env(ctx context.Context, s source.Settings) (env, error) {
	var out env
	var err error
	if out.secrets, err = f.credentials(ctx, s.Secrets); err != nil {
		return out, err
	}
	if out.temp, err = f.temp(); err != nil {
		return out, err
	}
	if s.Path != "" {
		out.path, err = dir.Resolve(f.Root, s.Path)
	}
	return out, err
}

// credentials finds and reads the secrets that a source names.
func (f *Fetcher) credentials(ctx context.Context, names []string) (*credential.Set, error) {
	list := make([]source.Secret, 0, len(names))
	for _, name := range names {
		if f.Secrets == nil {
			return nil, errs.New(errs.NotFound, "secret %q is named by the source, and there are no secrets here",
				name).At("/secrets", "R-DIS-4")
		}
		secret, err := f.Secrets(ctx, name)
		if err != nil {
			return nil, errs.Wrap(errs.KindOf(err), err, "secret %q of the source", name)
		}
		list = append(list, secret)
	}
	return credential.Parse(list)
}

// temp is the directory where sources are unpacked.
func (f *Fetcher) temp() (string, error) {
	if f.Cache == "" {
		return "", nil
	}
	at := filepath.Join(f.Cache, workDir)
	return at, errs.Wrap(errs.Internal, os.MkdirAll(at, 0o700), "make the directory for what is unpacked")
}

// Sweep removes what an interrupted process left in the cache. It is called before the first read, by the only process
// that uses the cache.
func (f *Fetcher) Sweep() error {
	if f.Cache == "" {
		return nil
	}
	return errs.Wrap(errs.Internal, os.RemoveAll(filepath.Join(f.Cache, workDir)), "remove what was unpacked before")
}

func (f *Fetcher) probe(ctx context.Context, t source.Type, s source.Settings) (p Probe, err error) {
	at, err := f.env(ctx, s)
	if err != nil {
		return Probe{}, err
	}
	switch t {
	case source.Directory:
		tree, err := directory(ctx, at)
		if err != nil {
			return Probe{}, err
		}
		return Probe{Fingerprint: tree.Fingerprint}, tree.Close()
	case source.Archive:
		p.Fingerprint, err = archive.Probe(ctx, archiveSource(at, s))
	case source.Git:
		g, gerr := f.gitSource(at, s)
		if gerr != nil {
			return Probe{}, gerr
		}
		p.Fingerprint, err = git.Probe(ctx, g)
		p.Resolved = p.Fingerprint
	case source.Image:
		img, ierr := f.imageSource(at, s)
		if ierr != nil {
			return Probe{}, ierr
		}
		p.Fingerprint, p.Resolved, err = oci.Probe(ctx, img)
	case source.GRPC:
		p.Fingerprint, err = registry.Probe(ctx, registryOptions(at, s))
	case source.ConfigMap:
		c, cerr := configMapOptions(at, s)
		if cerr != nil {
			return Probe{}, cerr
		}
		p.Fingerprint, err = configmap.Probe(ctx, c)
	case source.SQLite:
		p.Fingerprint, err = sqlite.Probe(ctx, sqlite.Options{Path: at.path})
	}
	if err != nil {
		return Probe{}, err
	}
	return p, nil
}

func (f *Fetcher) open(ctx context.Context, t source.Type, s source.Settings) (*Tree, error) {
	at, err := f.env(ctx, s)
	if err != nil {
		return nil, err
	}
	switch t {
	case source.Directory:
		return directory(ctx, at)
	case source.Archive:
		a, err := archive.Open(ctx, archiveSource(at, s))
		if err != nil {
			return nil, err
		}
		return &Tree{FS: a.FS(), Fingerprint: a.Fingerprint, Resolved: a.Digest, close: []func() error{a.Close}}, nil
	case source.Git:
		return f.git(ctx, at, s)
	case source.Image:
		return f.image(ctx, at, s)
	case source.GRPC:
		return served(registry.Open(ctx, registryOptions(at, s)))
	case source.ConfigMap:
		c, err := configMapOptions(at, s)
		if err != nil {
			return nil, err
		}
		return served(configmap.Open(ctx, c))
	case source.SQLite:
		return served(sqlite.Open(ctx, sqlite.Options{Path: at.path, Dir: at.temp}))
	default: // Check knows the types
		return nil, errs.New(errs.Invalid, "source type %q is unknown", t)
	}
}

// served makes a tree for sources that return a file system without files of their own on disk.
func served(fsys fs.FS, fingerprint string, end func() error, err error) (*Tree, error) {
	if err != nil {
		return nil, err
	}
	return &Tree{FS: fsys, Fingerprint: fingerprint, close: []func() error{end}}, nil
}

func directory(ctx context.Context, at env) (*Tree, error) {
	d, err := dir.Open(at.path)
	if err != nil {
		return nil, err
	}
	fingerprint, err := d.Fingerprint(ctx)
	if err != nil {
		_ = d.Close() // the reason why there is no tree matters more
		return nil, err
	}
	return &Tree{
		FS: d.FS(), Fingerprint: fingerprint, close: []func() error{d.Close},
		settled: func(ctx context.Context) error { return d.Settled(ctx, fingerprint) },
	}, nil
}

func archiveSource(at env, s source.Settings) archive.Source {
	return archive.Source{
		Path: at.path, URL: s.URL, Subdirectory: s.Subdirectory, Credentials: at.secrets, Insecure: s.Insecure,
		Temp: at.temp, Limits: archive.Standard(),
	}
}

func (f *Fetcher) gitSource(at env, s source.Settings) (git.Source, error) {
	out := git.Source{
		URL: s.URL, Reference: s.Reference, Subdirectory: s.Subdirectory, Credentials: at.secrets, Insecure: s.Insecure,
		Temp: at.temp, Limits: archive.Standard(),
	}
	if strings.HasPrefix(s.URL, "file:") {
		u, err := url.Parse(s.URL)
		if err != nil {
			return out, errs.New(errs.Invalid, "the URL of the git repository cannot be used").At(
				"/url", source.RuleURL)
		}
		if out.Path, err = dir.Resolve(f.Root, u.Path); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (f *Fetcher) git(ctx context.Context, at env, s source.Settings) (*Tree, error) {
	g, err := f.gitSource(at, s)
	if err != nil {
		return nil, err
	}
	tree, err := git.Open(ctx, g)
	if err != nil {
		return nil, err
	}
	return &Tree{
		FS: tree.FS(), Fingerprint: tree.Fingerprint, Resolved: tree.Commit,
		close: []func() error{tree.Close},
	}, nil
}

func registryOptions(at env, s source.Settings) registry.Options {
	return registry.Options{
		Address: s.Address, Insecure: s.Insecure, CA: at.secrets.Certificates,
		Token: at.secrets.Token, Dir: at.temp,
	}
}

func configMapOptions(at env, s source.Settings) (configmap.Options, error) {
	if at.secrets.Kubeconfig == nil {
		return configmap.Options{}, errs.New(errs.Invalid,
			"config map %s/%s needs a secret of kind kubeconfig for its cluster; name one in secrets",
			s.ConfigMap.Namespace, s.ConfigMap.Name).At("/secrets", source.RuleRequired)
	}
	return configmap.Options{
		Kubeconfig: at.secrets.Kubeconfig, Namespace: s.ConfigMap.Namespace,
		Name: s.ConfigMap.Name, Dir: at.temp,
	}, nil
}
