package oci

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source/dir"
)

// Annotations by which a layout names its images.
const (
	annotationRef  = "org.opencontainers.image.ref.name"
	annotationName = "io.containerd.image.name"
)

// layout is an OCI layout on disk.
type layout struct {
	root  *os.Root
	index []v1.Descriptor
}

// openLayout reads the index of a layout.
func openLayout(path string) (*layout, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, errs.New(errs.NotFound, "it cannot be opened: %s", dir.Reason(err))
	}
	l := &layout{root: root}
	var version struct {
		Version string `json:"imageLayoutVersion"`
	}
	var index v1.IndexManifest
	err = l.document("oci-layout", &version)
	if err == nil && !strings.HasPrefix(version.Version, "1.") {
		err = errs.New(errs.Invalid, "it is of version %q; 1.0.0 is read", version.Version)
	}
	if err == nil {
		err = l.document("index.json", &index)
	}
	if err != nil {
		_ = root.Close() // the reason why there is no layout matters more
		return nil, err
	}
	l.index = index.Manifests
	return l, nil
}

func (l *layout) close() error { return l.root.Close() }

func (l *layout) document(name string, into any) error {
	raw, err := l.read(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return errs.New(errs.Invalid, "its %s cannot be read: %s", name, err)
	}
	return nil
}

// open refuses what is no file: a pipe would block for ever.
func (l *layout) open(name string) (*os.File, error) {
	info, err := l.root.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errs.New(errs.NotFound, "it has no %s, and so is no OCI layout, or not a whole one", name)
	}
	if err == nil && !info.Mode().IsRegular() {
		return nil, errs.New(errs.Invalid, "its %s is no file", name)
	}
	var f *os.File
	if err == nil {
		f, err = l.root.Open(name)
	}
	if err != nil {
		return nil, errs.New(errs.Invalid, "its %s cannot be opened: %s", name, dir.Reason(err))
	}
	return f, nil
}

func (l *layout) read(name string) ([]byte, error) {
	f, err := l.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	raw, err := io.ReadAll(io.LimitReader(f, MaxManifest+1))
	if err != nil {
		return nil, errs.New(errs.Unavailable, "its %s cannot be read: %s", name, dir.Reason(err))
	}
	if len(raw) > MaxManifest {
		return nil, errs.New(errs.TooLarge, "its %s has more than %d bytes", name, MaxManifest)
	}
	return raw, nil
}

// head finds an image: "" is the only one of the layout, else a digest, a tag or a whole reference.
func (l *layout) head(_ context.Context, reference string) (string, error) {
	var fits []string
	for _, d := range l.index {
		ref := d.Annotations[annotationRef]
		if reference == "" || reference == d.Digest.String() || reference == ref ||
			reference == d.Annotations[annotationName] || strings.HasSuffix(ref, ":"+reference) {
			fits = append(fits, d.Digest.String())
		}
	}
	slices.Sort(fits)
	fits = slices.Compact(fits)
	switch {
	case len(fits) == 1:
		return fits[0], nil
	case len(fits) > 1:
		return "", errs.New(errs.Invalid, "it has %d images for the reference %q; choose one with reference: %s",
			len(fits), reference, l.names())
	case isDigest(reference): // one that only an index in it lists
		if _, err := l.root.Stat(blobPath(reference)); err == nil {
			return reference, nil
		}
	}
	return "", errs.New(errs.NotFound, "it has no image %q; it has %s", reference, l.names())
}

// names lists what can be chosen.
func (l *layout) names() string {
	const most = 20
	var names []string
	for _, d := range l.index {
		names = append(names, firstOf(d.Annotations[annotationRef], d.Annotations[annotationName], d.Digest.String()))
	}
	slices.Sort(names)
	if len(names) == 0 {
		return "none"
	}
	if len(names) > most {
		names = append(names[:most], "…")
	}
	return strings.Join(names, ", ")
}

func firstOf(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

func blobPath(sum string) string { return "blobs/" + strings.Replace(sum, ":", "/", 1) }

func (l *layout) manifest(ctx context.Context, reference string) ([]byte, string, error) {
	sum, err := l.head(ctx, reference)
	if err != nil {
		return nil, "", err
	}
	if !isDigest(sum) {
		return nil, "", errs.New(errs.Invalid, "its index lists the digest %q, which is no sha256 digest", sum)
	}
	raw, err := l.read(blobPath(sum))
	if err == nil && reference != sum {
		if err := matches(raw, sum); err != nil {
			return nil, "", err
		}
	}
	return raw, "", err
}

func (l *layout) blob(_ context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	f, err := l.open(blobPath(d.Digest.String()))
	if err != nil {
		return nil, err
	}
	return f, nil
}

// maxReferrers bounds how many manifests of a layout are looked at for what they refer to.
const maxReferrers = 1024

// referrers is the list under its tag, as a copy of a registry has it, with those of the layout's own index that refer
// to the image.
func (l *layout) referrers(ctx context.Context, sum string) ([]byte, error) {
	out := v1.IndexManifest{SchemaVersion: 2}
	if raw, _, err := l.manifest(ctx, referrersTag(sum)); err == nil {
		if json.Unmarshal(raw, &out) != nil {
			return nil, errs.New(errs.Invalid, "its list %s cannot be read", referrersTag(sum))
		}
	}
	for _, d := range l.index[:min(len(l.index), maxReferrers)] {
		if d.Size > maxBundleManifest || !isDigest(d.Digest.String()) {
			continue
		}
		raw, err := l.read(blobPath(d.Digest.String()))
		var m struct {
			ArtifactType string            `json:"artifactType"`
			Annotations  map[string]string `json:"annotations"`
			Subject      v1.Descriptor     `json:"subject"`
		}
		if err == nil && json.Unmarshal(raw, &m) == nil && m.Subject.Digest.String() == sum {
			d.ArtifactType, d.Annotations = m.ArtifactType, m.Annotations
			out.Manifests = append(out.Manifests, d)
		}
	}
	return json.Marshal(out)
}
