package oci_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/internal/imagetest"
	"github.com/chandler-fleet/chandler/libs/source/oci"
	"github.com/chandler-fleet/chandler/libs/source/signature/signaturetest"
)

const (
	forge   = "https://issuer.test"
	release = "https://forge.test/ops/release"
)

// raw is a manifest that is stored as it is.
type raw []byte

func (r raw) RawManifest() ([]byte, error)              { return r, nil }
func (r raw) MediaType() (types.MediaType, error)       { return types.OCIManifestSchema1, nil }
func (r raw) descriptor(predicate string) v1.Descriptor { return descriptorOf(r, predicate) }

func descriptorOf(r raw, predicate string) v1.Descriptor {
	l := static.NewLayer(r, types.OCIManifestSchema1)
	sum, _ := l.Digest() // of bytes in memory
	d := v1.Descriptor{
		MediaType: types.OCIManifestSchema1, Digest: sum, Size: int64(len(r)), ArtifactType: signaturetest.BundleType,
	}
	if predicate != "" {
		d.Annotations = map[string]string{"dev.sigstore.bundle.predicateType": predicate}
	}
	return d
}

// refer stores bundles that refer to an image, as cosign does, and returns their manifests.
func (h *hub) refer(t *testing.T, repository, sum, predicate string, bundles ...[]byte) []v1.Descriptor {
	t.Helper()
	repo, err := name.NewRepository(h.host+"/"+repository, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	var out []v1.Descriptor
	for _, b := range bundles {
		m, layers := bundleManifest(t, sum, predicate, b)
		for _, l := range layers {
			if err := remote.WriteLayer(repo, l); err != nil {
				t.Fatal(err)
			}
		}
		d := m.descriptor(predicate)
		if err := remote.Put(repo.Digest(d.Digest.String()), m); err != nil {
			t.Fatal(err)
		}
		out = append(out, d)
	}
	return out
}

func bundleManifest(t *testing.T, sum, predicate string, bundle []byte) (raw, []v1.Layer) {
	t.Helper()
	config := static.NewLayer([]byte(`{}`), "application/vnd.oci.empty.v1+json")
	layer := static.NewLayer(bundle, signaturetest.BundleType)
	describe := func(l v1.Layer) map[string]any {
		d, err := l.Digest()
		if err != nil {
			t.Fatal(err)
		}
		size, err := l.Size()
		if err != nil {
			t.Fatal(err)
		}
		mt, err := l.MediaType()
		if err != nil {
			t.Fatal(err)
		}
		return map[string]any{"mediaType": mt, "digest": d.String(), "size": size}
	}
	text, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": types.OCIManifestSchema1, "artifactType": signaturetest.BundleType,
		"config": describe(config), "layers": []any{describe(layer)},
		"subject":     map[string]any{"mediaType": types.OCIManifestSchema1, "digest": sum, "size": 1},
		"annotations": map[string]string{"dev.sigstore.bundle.predicateType": predicate},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text, []v1.Layer{config, layer}
}

// list stores the list of what refers to an image under the tag for registries that do not list it themselves.
func (h *hub) list(t *testing.T, repository, sum string, manifests []v1.Descriptor) {
	t.Helper()
	text, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: manifests})
	if err != nil {
		t.Fatal(err)
	}
	h.push(t, repository+":"+strings.Replace(sum, ":", "-", 1), indexOf(text))
}

// indexOf is an index that is stored as it is.
type indexOf []byte

func (r indexOf) RawManifest() ([]byte, error)        { return r, nil }
func (r indexOf) MediaType() (types.MediaType, error) { return types.OCIImageIndex, nil }
func (r indexOf) Digest() (v1.Hash, error)            { return static.NewLayer(r, types.OCIImageIndex).Digest() }

// TestBundles: bundles of Sigstore are found where a registry lists what refers to an image, and where it does not,
// under the tag of such a list; nothing else that refers to the image is taken for a signature, and many, large or
// lying ones cost a bounded effort.
func TestBundles(t *testing.T) { //nolint:tparallel // subtests make bundles in the clock of synctest of their parent
	t.Parallel()
	var in *signaturetest.Instance
	var trusted string
	synctest.Test(t, func(t *testing.T) { // the year 2000: certificates of then are judged by the time of then
		in = signaturetest.New(t)
		trusted = in.TrustedRoot()
	})
	sign := func(t *testing.T, s signaturetest.Signing) (out []byte) {
		t.Helper()
		s.Issuer, s.Subject, s.Log = forge, release, in
		synctest.Test(t, func(*testing.T) { out = in.Bundle(s) })
		return out
	}
	const parts = "https://spdx.dev/Document"
	many := func(n int) [][]byte {
		out := make([][]byte, n)
		for i := range out {
			out[i] = fmt.Appendf(nil, `{"mediaType":%q,"n":%d}`, signaturetest.BundleType, i)
		}
		return out
	}
	for what, c := range map[string]struct {
		bundles   func(t *testing.T, h *hub, sum string) []v1.Descriptor
		nameless  bool   // nothing is listed
		forbidden string // part of the reason; "" is taken
		asked     int    // at most so many manifests
	}{
		"signed": {bundles: func(t *testing.T, h *hub, sum string) []v1.Descriptor {
			t.Helper()
			return h.refer(t, "ops/fleet", sum, signaturetest.SignPredicate,
				sign(t, signaturetest.Signing{Digest: sum}))
		}},
		"without an annotation": {bundles: func(t *testing.T, h *hub, sum string) []v1.Descriptor {
			t.Helper()
			return h.refer(t, "ops/fleet", sum, "", sign(t, signaturetest.Signing{Digest: sum}))
		}},
		"behind a hundred lists of parts": {bundles: func(t *testing.T, h *hub, sum string) []v1.Descriptor {
			t.Helper()
			return append(h.refer(t, "ops/fleet", sum, parts, many(100)...),
				h.refer(t, "ops/fleet", sum, "", sign(t, signaturetest.Signing{Digest: sum}))...)
		}},
		"nothing": {nameless: true, forbidden: "it has no signature"},
		"a bundle for another image": {bundles: func(t *testing.T, h *hub, sum string) []v1.Descriptor {
			t.Helper()
			return h.refer(t, "ops/fleet", sum, "", sign(t, signaturetest.Signing{
				Digest: "sha256:" + strings.Repeat("0", 64),
			}))
		}, forbidden: "digest"},
		"a list of parts": {bundles: func(t *testing.T, h *hub, sum string) []v1.Descriptor {
			t.Helper()
			return h.refer(t, "ops/fleet", sum, parts, sign(t, signaturetest.Signing{Digest: sum, Predicate: parts}))
		}, forbidden: parts},
		"a list of parts that is called a signature": {bundles: func(t *testing.T, h *hub, sum string) []v1.Descriptor {
			t.Helper()
			return h.refer(t, "ops/fleet", sum, signaturetest.SignPredicate,
				sign(t, signaturetest.Signing{Digest: sum, Predicate: parts}))
		}, forbidden: "attestation of type"},
		"a signature behind a hundred others": {bundles: func(t *testing.T, h *hub, sum string) []v1.Descriptor {
			t.Helper()
			return append(h.refer(t, "ops/fleet", sum, "", many(100)...),
				h.refer(t, "ops/fleet", sum, "", sign(t, signaturetest.Signing{Digest: sum}))...)
		}, forbidden: "more", asked: 70},
		"a huge one": {bundles: func(t *testing.T, h *hub, sum string) []v1.Descriptor {
			t.Helper()
			return h.refer(t, "ops/fleet", sum, "", sign(t, signaturetest.Signing{Digest: sum, Padding: 2 << 20}))
		}, forbidden: "more than 1048576"},
	} {
		for _, api := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, listed %t", what, api), func(t *testing.T) {
				h := newHub(t)
				sum := h.push(t, "ops/fleet:v1", fleet())
				var list []v1.Descriptor
				if !c.nameless {
					list = c.bundles(t, h, sum)
				}
				if !api && !c.nameless {
					h.list(t, "ops/fleet", sum, list)
				}
				h.set(func(w http.ResponseWriter, r *http.Request) bool {
					if !strings.Contains(r.URL.Path, "/referrers/") || !api {
						return false
					}
					w.Header().Set("Content-Type", string(types.OCIImageIndex))
					_ = json.NewEncoder(w).Encode(v1.IndexManifest{SchemaVersion: 2, Manifests: list})
					return true
				})
				s := h.source(t, "ops/fleet:v1")
				s.Signatures = &source.SignaturePolicy{
					Identities: []source.SignerIdentity{{Issuer: forge, Subject: release}}, TrustedRoot: trusted,
				}
				tree, err := oci.Open(t.Context(), s)
				if err == nil {
					err = tree.Close()
				}
				switch {
				case c.forbidden == "" && err != nil:
					t.Error(err)
				case c.forbidden != "" && (!errors.Is(err, oci.ErrUnsigned) || !errs.Is(err, errs.Forbidden) ||
					!strings.Contains(err.Error(), c.forbidden) || len(err.Error()) > 4000):
					t.Errorf("%v; want %s", err, c.forbidden)
				}
				if n := len(h.asked("/manifests/")); c.asked > 0 && n > c.asked {
					t.Errorf("%d manifests were asked for", n)
				}
			})
		}
	}
}

// TestReferrersThatCannotBeHad: a registry that does not say just now what refers to an image is asked again; one that
// answers something else knows nothing of it.
func TestReferrersThatCannotBeHad(t *testing.T) {
	t.Parallel()
	key, h := signaturetest.NewKey(t), newHub(t)
	h.push(t, "ops/fleet:v1", fleet())
	s := h.source(t, "ops/fleet:v1")
	s.Signatures = &source.SignaturePolicy{Keys: []string{signaturetest.Public(t, key)}}
	for status, unsigned := range map[int]bool{
		http.StatusInternalServerError: false, http.StatusOK: true, http.StatusBadRequest: true,
		http.StatusMethodNotAllowed: true,
	} {
		h.set(func(w http.ResponseWriter, r *http.Request) bool {
			is := strings.Contains(r.URL.Path, "/referrers/")
			if is {
				w.WriteHeader(status)
			}
			return is
		})
		_, err := oci.Open(t.Context(), s)
		if errors.Is(err, oci.ErrUnsigned) != unsigned || errs.Is(err, errs.Unavailable) == unsigned {
			t.Errorf("status %d: %v", status, err)
		}
	}
}

// TestBundlesAgain: what is kept of an image that a bundle signs proves it again without the registry, decades after
// the certificate; by another policy it proves nothing. A layout on disk holds bundles as well.
func TestBundlesAgain(t *testing.T) {
	t.Parallel()
	img := imagetest.Image(nil, imagetest.Tar(imagetest.File("manifests/csv.yaml", "kind: ClusterServiceVersion\n"),
		imagetest.File("metadata/annotations.yaml", "annotations: {}\n")))
	hash, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	var trusted string
	var text []byte
	h := newHub(t)
	const repository = "ops/gauge"
	synctest.Test(t, func(t *testing.T) {
		in := signaturetest.New(t)
		trusted = in.TrustedRoot()
		text = in.Bundle(signaturetest.Signing{
			Issuer: forge, Subject: release, Log: in, Digest: hash.String(), Name: h.host + "/" + repository,
		})
	})
	policy := source.SignaturePolicy{
		Identities:  []source.SignerIdentity{{Issuer: forge, Subject: release}},
		TrustedRoot: trusted, MatchRepository: true,
	}
	sum := h.push(t, repository+":v1", img)
	h.list(t, repository, sum, h.refer(t, repository, sum, "", text))
	s := h.source(t, repository+":v1")
	s.Signatures, s.Evidence = &policy, oci.MaxBundleEvidence
	tree, err := oci.Bundle(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Close(); err != nil || tree.Evidence == nil {
		t.Fatal("nothing is kept", err)
	}
	e, err := oci.ReadEvidence(tree.Evidence)
	if err != nil {
		t.Fatal(err)
	}
	others := map[string]func(p *source.SignaturePolicy){
		"the same": func(*source.SignaturePolicy) {},
		"another identity": func(p *source.SignaturePolicy) {
			p.Identities = []source.SignerIdentity{{Issuer: forge, Subject: "somebody@else.test"}}
		},
		"another instance": func(p *source.SignaturePolicy) { p.TrustedRoot = signaturetest.New(t).TrustedRoot() },
		"another repository": func(p *source.SignaturePolicy) {
			p.Repositories = []string{"registry.test/other"}
		},
	}
	for what, change := range others {
		p := policy
		change(&p)
		again, err := e.Bundle(t.Context(), p, t.TempDir())
		if err == nil {
			err = again.Close()
		}
		if what == "the same" && err != nil || what != "the same" && !errors.Is(err, oci.ErrUnsigned) {
			t.Errorf("%s: %v", what, err)
		}
	}

	dir := t.TempDir()
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.AppendImage(img, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": "v1",
	})); err != nil {
		t.Fatal(err)
	}
	inLayout := oci.Source{Layout: dir, Reference: "v1", Temp: t.TempDir(), Limits: s.Limits, Signatures: &policy}
	policy.MatchRepository = false
	if _, err := oci.Bundle(t.Context(), inLayout); !errors.Is(err, oci.ErrUnsigned) {
		t.Errorf("without the bundle: %v", err)
	}
	m, layers := bundleManifest(t, sum, "", text)
	for _, one := range append(layers, static.NewLayer(m, types.OCIManifestSchema1)) {
		if err := writeBlob(l, one); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.AppendDescriptor(m.descriptor("")); err != nil {
		t.Fatal(err)
	}
	tree, err = oci.Bundle(t.Context(), inLayout)
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Close(); err != nil {
		t.Error(err)
	}
}

func writeBlob(l layout.Path, one v1.Layer) error {
	sum, err := one.Digest()
	if err != nil {
		return err
	}
	body, err := one.Compressed()
	if err != nil {
		return err
	}
	return l.WriteBlob(sum, body)
}
