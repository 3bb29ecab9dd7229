package oci

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/archive"
	"github.com/chandler-fleet/chandler/libs/source/credential"
	"github.com/chandler-fleet/chandler/libs/source/internal/web"
	"github.com/chandler-fleet/chandler/libs/source/signature"
)

// Labels of images (R-CAT-55, R-CAT-60).
const (
	LabelConfigs   = "operators.operatorframework.io.index.configs.v1"
	LabelDatabase  = "operators.operatorframework.io.index.database.v1"
	LabelManifests = "operators.operatorframework.io.bundle.manifests.v1"
	LabelMetadata  = "operators.operatorframework.io.bundle.metadata.v1"

	defaultConfigs   = "/configs"
	defaultDatabase  = "/database/index.db"
	defaultManifests = "manifests/"
	defaultMetadata  = "metadata/"
)

// Directories of a bundle's tree.
const (
	Manifests = "manifests"
	Metadata  = "metadata"
)

// Source is an image in a registry, or in a layout on disk.
type Source struct {
	// Image is the reference in a registry.
	Image string
	// Layout is the directory of an OCI layout; Reference chooses one of its images.
	Layout, Reference string
	// Subdirectory goes before the label that says where the catalog lies.
	Subdirectory string
	// Mirrors are lists in the order in which they hold.
	Mirrors     [][]source.Mirror
	Credentials *credential.Set
	// Insecure allows HTTP.
	Insecure bool
	// Named says that the image was named by the content of a catalog; nil is an administrator's own word.
	Named *Named
	// Signatures say who must have signed the image; nil asks nobody.
	Signatures *source.SignaturePolicy
	// Evidence is how many bytes the tree may keep of an image with a signature policy, for who checks it again; 0
	// keeps none.
	Evidence int64
	// Temp is where images are unpacked.
	Temp   string
	Limits archive.Limits
	// Cache keeps blobs; nil keeps none.
	Cache *Cache
	// Stall replaces the bound on a server's silence.
	Stall time.Duration
}

// Named says what an administrator has said of the catalog whose content names an image.
type Named struct {
	// Hosts are those of the settings: the source's own and the mirrors. No other is asked without TLS, and
	// none on this machine or its link unless Origin is there.
	Hosts []string
	// Origin is the host of the source; "" is a disk of this machine.
	Origin string
}

// settled reports whether the settings name a host.
func (n *Named) settled(host string) bool {
	return n == nil || slices.ContainsFunc(n.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// Tree is an image that was unpacked.
type Tree struct {
	*archive.Target

	// Digest is what the reference points to: of an image of several platforms that of the index.
	Digest string
	// Resolved is the reference by digest.
	Resolved string
	Labels   map[string]string
	// Evidence is what an image with a signature policy is checked again by (ReadEvidence); nil where it is larger than
	// it may be.
	Evidence []byte
	// Database is the path of an SQLite database, "" for a file-based catalog.
	Database string
}

// Probe asks what the reference points to: one request, or none for a reference by digest.
func Probe(ctx context.Context, s Source) (sum, resolved string, err error) {
	if ref, perr := source.ParseReference(s.Image); perr == nil && ref.Digest != "" {
		return ref.Digest, s.resolved(ref.Digest), nil
	}
	err = s.each(ctx, func(st store, reference string) error {
		sum, err = st.head(ctx, reference)
		return err
	})
	return sum, s.resolved(sum), err
}

// Open unpacks the catalog of an image.
func Open(ctx context.Context, s Source) (*Tree, error) {
	return s.open(ctx, s.catalogParts)
}

// Bundle unpacks a bundle image: manifests and metadata, whatever its labels call them.
func Bundle(ctx context.Context, s Source) (*Tree, error) {
	return s.open(ctx, bundleParts)
}

// plan says what of an image is wanted.
type plan struct {
	parts    []archive.Part
	database bool
	// missing is the sentence for an image without it.
	missing string
}

func (s Source) catalogParts(labels map[string]string) (plan, error) {
	at, configs := labels[LabelConfigs]
	db, database := labels[LabelDatabase]
	switch {
	case s.Subdirectory != "":
		at = s.Subdirectory
	case configs:
	case database:
		inside, err := inImage(LabelDatabase, db, defaultDatabase)
		return plan{[]archive.Part{{From: inside, To: "index.db"}}, true, "the image has no file /" + inside +
			", where its label " + LabelDatabase + " says that its database is"}, err
	case labels[LabelManifests] != "":
		return plan{}, errs.New(errs.Invalid, "this is the image of one bundle; a catalog names it in an olm.bundle")
	}
	inside, err := inImage(LabelConfigs, at, defaultConfigs)
	return plan{parts: []archive.Part{{From: inside, To: "."}}, missing: "the image has no directory /" + inside +
		" with files, where its label " + LabelConfigs + " (or subdirectory) says that the catalog is"}, err
}

func bundleParts(labels map[string]string) (plan, error) {
	manifests, err := inImage(LabelManifests, labels[LabelManifests], defaultManifests)
	if err != nil {
		return plan{}, err
	}
	metadata, err := inImage(LabelMetadata, labels[LabelMetadata], defaultMetadata)
	return plan{
		parts:   []archive.Part{{From: manifests, To: Manifests}, {From: metadata, To: Metadata}},
		missing: "the image has no directory /" + manifests + " with files; a bundle image has its manifests there",
	}, err
}

// inImage makes a path relative to the root of the image.
func inImage(label, at, standard string) (string, error) {
	if strings.Trim(at, "/. ") == "" {
		at = standard
	}
	clean := path.Clean(strings.Trim(at, "/"))
	if clean == ".." || strings.HasPrefix(clean, "../") || strings.ContainsRune(clean, 0) {
		return "", errs.New(errs.Invalid, "label %s says %q, which lies outside of the image", label, at)
	}
	return clean, nil
}

// open unpacks what wanted says.
func (s Source) open(ctx context.Context, wanted func(labels map[string]string) (plan, error)) (*Tree, error) {
	var out *Tree
	err := s.each(ctx, func(st store, reference string) error {
		var kept *keeper
		if s.Signatures != nil && s.Evidence > 0 {
			kept = &keeper{store: st, left: s.Evidence}
			st = kept
		}
		p, sum, err := load(ctx, st, reference)
		if err != nil {
			return err
		}
		img := signature.Image{Digest: sum, Name: s.name()}
		if err := signed(ctx, st, img, s.Signatures); err != nil {
			return err
		}
		pl, err := wanted(p.labels)
		if err != nil {
			return content{err}
		}
		target, err := p.unpack(ctx, s, pl)
		if err != nil {
			return err
		}
		out = &Tree{Target: target, Digest: sum, Resolved: s.resolved(sum), Labels: p.labels}
		if kept != nil {
			out.Evidence = kept.evidence(img)
		}
		if pl.database {
			out.Database = target.Path(pl.parts[0].To)
		}
		return nil
	})
	return out, err
}

// unpack applies all layers in turn.
func (p *picture) unpack(ctx context.Context, s Source, pl plan) (*archive.Target, error) {
	var total int64
	for _, l := range p.layers {
		if total += max(l.Size, 0); total > s.Limits.Compressed || l.Size < 0 {
			return nil, content{errs.New(errs.TooLarge,
				"the layers of the image have more than %d bytes; give a smaller catalog", s.Limits.Compressed).At(
				"", archive.RuleCompressed)}
		}
	}
	t, err := archive.NewTarget(s.Temp, s.Limits)
	if err != nil {
		return nil, err
	}
	for i := range p.layers {
		if err = p.layer(ctx, t, i, pl.parts); err != nil {
			break
		}
	}
	if err == nil {
		if err = t.CountLinks(ctx); err != nil && ctx.Err() == nil {
			err = content{err}
		}
	}
	switch {
	case err != nil:
	case pl.database && t.Has(pl.parts[0].To) != archive.File, !pl.database && pl.parts[0].To != "." &&
		t.Has(pl.parts[0].To) != archive.Directory, t.Empty():
		err = content{errs.New(errs.Invalid, "%s", pl.missing)}
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (p *picture) layer(ctx context.Context, t *archive.Target, i int, parts []archive.Part) error {
	v, err := openBlob(ctx, p.store, p.layers[i])
	if err != nil {
		return err
	}
	defer func() { _ = v.Close() }() // it was only read
	err = archive.Extract(ctx, v, t, archive.Options{Layer: true, Parts: parts})
	if err == nil || v.end != nil || ctx.Err() != nil || errs.Is(err, errs.Unavailable) {
		return err
	}
	// What looks like a bad archive may be a blob that was changed on its way: another mirror has it right.
	if lie := v.rest(); lie != nil {
		return lie
	}
	return content{web.About(err, "layer %d of the image", i+1)}
}
