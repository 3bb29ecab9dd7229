// Package sources turns what a person says on the command line into the settings of a catalog's source
// and into the values of its credentials. Values come from files and standard input, never from flags,
// which every process of the machine can read.
package sources

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Flags are the flags of a source.
type Flags struct {
	directory, archive, git, image, layout, template, grpc, configMap, sqlite string

	reference, subdirectory string
	secrets, mirrors        []string
	signatures              signatureFlags
	prefetch                bool
	registry                struct{ insecure, never bool }
	poll, timeout, mode     string
	display                 model.CatalogDisplay
}

// Register adds the flags to a command.
func (f *Flags) Register(c *cobra.Command) {
	set := c.Flags()
	set.StringVar(&f.directory, "directory", "", "file-based catalog or bundle directories, as the indexer sees them")
	set.StringVar(&f.archive, "archive", "", "tar, tar.gz or tar.zst file: a path as the indexer sees it, or a URL")
	set.StringVar(&f.git, "git", "", "URL of a repository")
	set.StringVar(&f.image, "image", "", "catalog image, by tag or digest")
	set.StringVar(&f.template, "template", "",
		"catalog image with {kube_major_version}, {kube_minor_version} or {kube_patch_version}; --image is used if "+
			"it does not exist")
	set.StringVar(&f.layout, "layout", "", "OCI layout on disk, as the indexer sees it")
	set.StringVar(&f.grpc, "grpc", "", "host:port of a running catalog server")
	set.StringVar(&f.configMap, "configmap", "",
		"config map as namespace/name; --secret names the kubeconfig of its cluster")
	set.StringVar(&f.sqlite, "sqlite", "", "index database, as the indexer sees it")
	set.StringVar(&f.reference, "reference", "", "of a repository: branch, tag or commit")
	set.StringVar(&f.subdirectory, "subdirectory", "", "folder of the catalog in the archive, repository or image")
	set.StringSliceVar(&f.secrets, "secret", nil, "catalog secret that the source needs; several with commas")
	set.StringSliceVar(&f.mirrors, "mirror", nil,
		"prefix=mirror: use the mirror for images with this prefix; several with commas")
	set.BoolVar(&f.registry.never, "mirrors-only", false, "use only mirrors, never the original registry")
	set.BoolVar(&f.registry.insecure, "insecure", false, "allow a registry or server without TLS")
	f.signatures.register(set)
	set.StringVar(&f.poll, "poll", "", "poll interval, such as 30m; 0s for never (default: the indexer's)")
	set.StringVar(&f.timeout, "timeout", "", "timeout of one poll, such as 10m")
	set.BoolVar(&f.prefetch, "prefetch", false, "fetch all bundle images at once instead of when they are needed")
	set.StringVar(&f.mode, "mode", "",
		"strict: one error keeps the previous revision in service (default); lenient: leave out packages with errors")
	set.StringVar(&f.display.Name, "display-name", "", "display name")
	set.StringVar(&f.display.Publisher, "publisher", "", "publisher to display")
	set.StringVar(&f.display.Description, "description", "", "description to display")
}

// Names of the flags that say where the content is, one of which is needed.
const kinds = "--directory, --archive, --git, --image, --template, --layout, --grpc, --configmap or --sqlite"

// Source is the source that the flags describe. Whether all of it fits together the gateway says, by the
// rules that it has in common with everybody.
func (f *Flags) Source() (model.CatalogSource, error) {
	s := model.CatalogSource{
		Reference: f.reference, Subdirectory: f.subdirectory, Secrets: f.secrets, Insecure: f.registry.insecure,
		Poll: f.poll, Timeout: f.timeout, Prefetch: f.prefetch, Mode: f.mode,
	}
	given := 0
	for _, k := range f.places(&s) {
		if k.value == "" {
			continue
		}
		given++
		if err := k.take(k.value); err != nil {
			return s, err
		}
	}
	if given != 1 {
		return s, errors.New("exactly one source is needed: " + kinds)
	}
	var err error
	if s.Mirrors, err = mirrors(f.mirrors, f.registry.never); err != nil {
		return s, err
	}
	s.Signatures, err = f.signatures.policy()
	return s, err
}

// place is one way to say where a catalog is.
type place struct {
	value string
	take  func(value string) error
}

// places write what the flags say into s. --image and --template are one way.
func (f *Flags) places(s *model.CatalogSource) []place {
	at := func(t source.Type, path string) (err error) {
		s.Type = t
		s.Path, err = filepath.Abs(path)
		return err
	}
	return []place{
		{f.directory, func(v string) error { return at(source.Directory, v) }},
		{f.sqlite, func(v string) error { return at(source.SQLite, v) }},
		{f.layout, func(v string) error { return at(source.Image, v) }},
		{f.archive, func(v string) error {
			if strings.Contains(v, "://") {
				s.Type, s.URL = source.Archive, v
				return nil
			}
			return at(source.Archive, v)
		}},
		{f.git, func(v string) error { s.Type, s.URL = source.Git, v; return nil }},
		{f.image + f.template, func(string) error {
			s.Type, s.Image, s.Template = source.Image, f.image,
				f.template
			return nil
		}},
		{f.grpc, func(v string) error { s.Type, s.Address = source.GRPC, v; return nil }},
		{f.configMap, func(v string) error {
			namespace, name, ok := strings.Cut(v, "/")
			if !ok {
				return fmt.Errorf("--configmap %q: want namespace/name", v)
			}
			s.Type, s.ConfigMap = source.ConfigMap, &model.CatalogConfigMap{Namespace: namespace, Name: name}
			return nil
		}},
	}
}

// Display is what people are to see, nil where nothing is said.
func (f *Flags) Display() *model.CatalogDisplay {
	if f.display == (model.CatalogDisplay{}) {
		return nil
	}
	return &f.display
}

// mirrors reads prefix=mirror, several of one prefix in the order in which they are to be asked.
func mirrors(pairs []string, never bool) ([]model.CatalogMirror, error) {
	var out []model.CatalogMirror
	for _, p := range pairs {
		prefix, mirror, ok := strings.Cut(p, "=")
		if !ok || prefix == "" || mirror == "" {
			return nil, fmt.Errorf("--mirror %q: want prefix=mirror", p)
		}
		i := slices.IndexFunc(out, func(m model.CatalogMirror) bool { return m.Source == prefix })
		if i < 0 {
			out = append(out, model.CatalogMirror{Source: prefix, Never: never})
			i = len(out) - 1
		}
		out[i].Mirrors = append(out[i].Mirrors, mirror)
	}
	if never && len(out) == 0 {
		return nil, errors.New("--mirrors-only needs --mirror")
	}
	return out, nil
}
