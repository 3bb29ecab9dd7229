package opener

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

// Directories below Opener.Cache.
const (
	workDir  = "work"
	blobsDir = "blobs"
)

// scene is what a look needs beside the settings.
type scene struct {
	secrets *credential.Set
	temp    string
	path    string // of the settings, resolved
}

func (o *Opener) scene(ctx context.Context, s source.Settings) (scene, error) {
	var out scene
	var err error
	if out.secrets, err = o.credentials(ctx, s.Secrets); err != nil {
		return out, err
	}
	if out.temp, err = o.temp(); err != nil {
		return out, err
	}
	if s.Path != "" {
		out.path, err = dir.Resolve(o.Root, s.Path)
	}
	return out, err
}

// credentials finds and reads the secrets that a source names.
func (o *Opener) credentials(ctx context.Context, names []string) (*credential.Set, error) {
	list := make([]source.Secret, 0, len(names))
	for _, name := range names {
		if o.Secrets == nil {
			return nil, errs.New(errs.NotFound, "secret %q is named by the source, and there are no secrets here",
				name).At("/secrets", "R-DIS-4")
		}
		secret, err := o.Secrets(ctx, name)
		if err != nil {
			return nil, errs.Wrap(errs.KindOf(err), err, "secret %q of the source", name)
		}
		list = append(list, secret)
	}
	return credential.Parse(list)
}

// temp is where sources are unpacked.
func (o *Opener) temp() (string, error) {
	if o.Cache == "" {
		return "", nil
	}
	at := filepath.Join(o.Cache, workDir)
	return at, errs.Wrap(errs.Internal, os.MkdirAll(at, 0o700), "make the directory for what is unpacked")
}

// Sweep removes what a process that ended in the midst left in the cache. It is called before the first
// look, by the only process that uses the cache.
func (o *Opener) Sweep() error {
	if o.Cache == "" {
		return nil
	}
	return errs.Wrap(errs.Internal, os.RemoveAll(filepath.Join(o.Cache, workDir)), "remove what was unpacked before")
}

func (o *Opener) probe(ctx context.Context, t source.Type, s source.Settings) (p Probe, err error) {
	at, err := o.scene(ctx, s)
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
		g, gerr := o.gitSource(at, s)
		if gerr != nil {
			return Probe{}, gerr
		}
		p.Fingerprint, err = git.Probe(ctx, g)
		p.Resolved = p.Fingerprint
	case source.Image:
		img, ierr := o.imageSource(at, s)
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

func (o *Opener) open(ctx context.Context, t source.Type, s source.Settings) (*Tree, error) {
	at, err := o.scene(ctx, s)
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
		return o.git(ctx, at, s)
	case source.Image:
		return o.image(ctx, at, s)
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

// served makes a tree of what the sources return that hold no files of their own.
func served(fsys fs.FS, fingerprint string, end func() error, err error) (*Tree, error) {
	if err != nil {
		return nil, err
	}
	return &Tree{FS: fsys, Fingerprint: fingerprint, close: []func() error{end}}, nil
}

func directory(ctx context.Context, at scene) (*Tree, error) {
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

func archiveSource(at scene, s source.Settings) archive.Source {
	return archive.Source{
		Path: at.path, URL: s.URL, Subdirectory: s.Subdirectory, Credentials: at.secrets, Insecure: s.Insecure,
		Temp: at.temp, Limits: archive.Standard(),
	}
}

func (o *Opener) gitSource(at scene, s source.Settings) (git.Source, error) {
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
		if out.Path, err = dir.Resolve(o.Root, u.Path); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (o *Opener) git(ctx context.Context, at scene, s source.Settings) (*Tree, error) {
	g, err := o.gitSource(at, s)
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

func registryOptions(at scene, s source.Settings) registry.Options {
	return registry.Options{
		Address: s.Address, Insecure: s.Insecure, CA: at.secrets.Certificates,
		Token: at.secrets.Token, Dir: at.temp,
	}
}

func configMapOptions(at scene, s source.Settings) (configmap.Options, error) {
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
