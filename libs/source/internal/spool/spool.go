// Package spool writes what a source of another form holds as a file-based catalog: one file for each
// package in a temporary directory, so that memory holds one document and not the catalog.
package spool

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
)

const (
	// MaxBytes bounds what one catalog may take on disk; the largest published ones have 600 MB as documents.
	MaxBytes = 4 << 30
	// MaxPackages bounds the packages, each of which is a file; the largest published catalog has 400.
	MaxPackages = 20_000

	dirMode  = 0o700
	fileMode = 0o600
)

// Package is olm.package.
type Package struct {
	Schema         string `json:"schema"`
	Name           string `json:"name"`
	DefaultChannel string `json:"defaultChannel"`
	Description    string `json:"description,omitempty"`
	Icon           *Icon  `json:"icon,omitempty"`
}

// Icon is the picture of a package, its data as base64.
type Icon struct {
	Data      string `json:"base64data"`
	MediaType string `json:"mediatype"`
}

// Channel is olm.channel.
type Channel struct {
	Schema  string          `json:"schema"`
	Package string          `json:"package"`
	Name    string          `json:"name"`
	Entries []catalog.Entry `json:"entries"`
}

// Bundle is olm.bundle.
type Bundle struct {
	Schema        string                 `json:"schema"`
	Package       string                 `json:"package"`
	Name          string                 `json:"name"`
	Image         string                 `json:"image,omitempty"`
	Properties    []catalog.Property     `json:"properties"`
	RelatedImages []catalog.RelatedImage `json:"relatedImages,omitempty"`
}

// Embed adds manifests, each as a property olm.bundle.object.
func (b *Bundle) Embed(manifests ...[]byte) error {
	for _, m := range manifests {
		value, err := json.Marshal(map[string]string{"data": base64.StdEncoding.EncodeToString(m)})
		if err != nil {
			return err
		}
		b.Properties = append(b.Properties, catalog.Property{Type: catalog.TypeBundleObject, Value: value})
	}
	return nil
}

// Deprecations is olm.deprecations.
type Deprecations struct {
	Schema  string        `json:"schema"`
	Package string        `json:"package"`
	Entries []Deprecation `json:"entries"`
}

// Deprecation is one entry of olm.deprecations.
type Deprecation struct {
	Reference Reference `json:"reference"`
	Message   string    `json:"message"`
}

// Reference names what is deprecated.
type Reference struct {
	Schema string `json:"schema"`
	Name   string `json:"name,omitempty"`
}

// Spool is a directory being written. It is for one goroutine.
type Spool struct {
	dir   string
	max   int64
	bytes int64
	names map[string]string // file by package
}

// New makes a spool below a directory, "" for the system's temporary one. max bounds its bytes, 0 is
// MaxBytes.
func New(parent string, limit int64) (*Spool, error) {
	dir, err := os.MkdirTemp(parent, "catalog-")
	if err != nil {
		return nil, errs.Wrap(errs.Unavailable, err, "no room for a catalog")
	}
	if limit <= 0 {
		limit = MaxBytes
	}
	return &Spool{dir: dir, max: limit, names: map[string]string{}}, nil
}

// FS is the catalog.
func (s *Spool) FS() fs.FS { return os.DirFS(s.dir) }

// Close removes the directory.
func (s *Spool) Close() error { return os.RemoveAll(s.dir) }

// Write adds documents of a package: values of the types of this package.
func (s *Spool) Write(pkg string, documents ...any) (err error) {
	name, err := s.file(pkg)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, fileMode)
	if err != nil {
		return errs.Wrap(errs.Unavailable, err, "no room for package %q", pkg)
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	w := bufio.NewWriter(&counter{s, f})
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, d := range documents {
		if err := enc.Encode(d); err != nil {
			return err
		}
	}
	return w.Flush()
}

// safe are names that are the same on every file system.
var safe = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,100}[a-z0-9])?$`)

// file returns the file of a package. Its name tells people the package, as far as it is one.
func (s *Spool) file(pkg string) (string, error) {
	if name, ok := s.names[pkg]; ok {
		return name, nil
	}
	if len(s.names) == MaxPackages {
		return "", errs.New(errs.TooLarge, "the catalog has more than %d packages", MaxPackages).At(
			"", "spool.MaxPackages")
	}
	dir := pkg
	if !safe.MatchString(pkg) {
		dir = "package_" + strconv.Itoa(len(s.names)+1)
	}
	name := filepath.Join(s.dir, dir, "catalog.json")
	if err := os.Mkdir(filepath.Dir(name), dirMode); err != nil {
		return "", errs.Wrap(errs.Unavailable, err, "no room for package %q", pkg)
	}
	s.names[pkg] = name
	return name, nil
}

// counter stops what grows beyond the bound.
type counter struct {
	spool *Spool
	file  *os.File
}

func (c *counter) Write(p []byte) (int, error) {
	if c.spool.bytes += int64(len(p)); c.spool.bytes > c.spool.max {
		return 0, errs.New(errs.TooLarge, "the catalog has more than %d bytes as documents", c.spool.max).At(
			"", "spool.MaxBytes")
	}
	return c.file.Write(p)
}
