package hub

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/archive"
	"github.com/chandler-fleet/chandler/libs/source/oci"
	"github.com/chandler-fleet/chandler/libs/source/signature/signaturetest"
)

// signing is a key with which images are signed.
type signing struct{ *ecdsa.PrivateKey }

func newSigning(t *testing.T) signing {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signing{k}
}

func (s signing) policy(t *testing.T) *source.SignaturePolicy {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(&s.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	return &source.SignaturePolicy{Keys: []string{string(text)}}
}

// attach signs an image by the key.
func (s signing) attach(l *layout, sum string) {
	l.t.Helper()
	payload := fmt.Appendf(nil, `{"critical":{"image":{"docker-manifest-digest":%q},`+
		`"type":"cosign container image signature"}}`, sum)
	hash := sha256.Sum256(payload)
	made, err := s.Sign(rand.Reader, hash[:], nil)
	if err != nil {
		l.t.Fatal(err)
	}
	l.image(strings.Replace(sum, ":", "-", 1)+".sig", l.blob(payload, map[string]string{
		"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(made),
	}))
}

// signatory signs the images of a test.
type signatory interface {
	policy(t *testing.T) *source.SignaturePolicy
	attach(l *layout, sum string)
}

// person signs with certificates of an instance of Sigstore that was there in the year 2000.
type person struct {
	in            *signaturetest.Instance
	trusted, name string
}

func newPerson(t *testing.T, name string) person {
	t.Helper()
	p := person{name: name}
	synctest.Test(t, func(t *testing.T) {
		p.in = signaturetest.New(t)
		p.trusted = p.in.TrustedRoot()
	})
	return p
}

func (p person) policy(*testing.T) *source.SignaturePolicy {
	return &source.SignaturePolicy{
		Identities:  []source.SignerIdentity{{Issuer: "https://issuer.test", Subject: p.name}},
		TrustedRoot: p.trusted,
	}
}

// attach stores a bundle that refers to the image.
func (p person) attach(l *layout, sum string) {
	l.t.Helper()
	var text []byte
	synctest.Test(l.t, func(*testing.T) {
		text = p.in.Bundle(signaturetest.Signing{
			Issuer: "https://issuer.test", Subject: p.name, Log: p.in, Digest: sum,
		})
	})
	layer := l.blob(text, nil)
	layer["mediaType"] = signaturetest.BundleType
	l.refs = append(l.refs, l.blob(l.json(map[string]any{
		"schemaVersion": 2, "artifactType": signaturetest.BundleType, "config": l.blob([]byte(`{}`), nil),
		"layers": []any{layer}, "subject": map[string]any{"digest": sum},
	}), nil))
	l.write("index.json", l.json(map[string]any{"schemaVersion": 2, "manifests": l.refs}))
}

// layout is an OCI layout that a test writes.
type layout struct {
	t    *testing.T
	dir  string
	refs []map[string]any
}

func (l *layout) write(name string, data []byte) {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		l.t.Fatal(err)
	}
}

func (l *layout) blob(data []byte, annotations map[string]string) map[string]any {
	l.t.Helper()
	sum := digest.Bytes(data)
	l.write("blobs/sha256/"+sum.Hex(), data)
	return map[string]any{
		"mediaType": "application/octet-stream", "digest": string(sum), "size": len(data), "annotations": annotations,
	}
}

// image adds an image under a reference.
func (l *layout) image(reference string, layers ...map[string]any) (sum string) {
	l.t.Helper()
	config := l.blob([]byte(`{"config":{}}`), nil)
	raw := l.json(map[string]any{"schemaVersion": 2, "config": config, "layers": layers})
	d := l.blob(raw, map[string]string{"org.opencontainers.image.ref.name": reference})
	l.refs = append(l.refs, d)
	l.write("index.json", l.json(map[string]any{"schemaVersion": 2, "manifests": l.refs}))
	return d["digest"].(string)
}

func (l *layout) json(v any) []byte {
	l.t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		l.t.Fatal(err)
	}
	return raw
}

// signedImage is what the indexer keeps of a bundle image with one manifest, signed by a key.
func signedImage(t *testing.T, by signatory, manifest string) []byte {
	t.Helper()
	l := &layout{t: t, dir: t.TempDir()}
	l.write("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	var files bytes.Buffer
	z := gzip.NewWriter(&files)
	w := tar.NewWriter(z)
	for name, text := range map[string]string{
		"manifests/csv.yaml": manifest,
		"metadata/annotations.yaml": "annotations:\n  operators.operatorframework.io.bundle.mediatype.v1: registry+v1\n" +
			"  operators.operatorframework.io.bundle.manifests.v1: manifests/\n" +
			"  operators.operatorframework.io.bundle.metadata.v1: metadata/\n" +
			"  operators.operatorframework.io.bundle.package.v1: tidegauge\n" +
			"  operators.operatorframework.io.bundle.channels.v1: stable\n",
	} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	sum := l.image("v1", l.blob(files.Bytes(), nil))
	by.attach(l, sum)
	tree, err := oci.Bundle(t.Context(), oci.Source{
		Layout: l.dir, Reference: "v1", Temp: t.TempDir(), Limits: archive.Standard(), Signatures: by.policy(t),
		Evidence: oci.MaxBundleEvidence,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Close(); err != nil || tree.Evidence == nil {
		t.Fatal("no evidence", err)
	}
	return tree.Evidence
}

// settings stores what a catalog says, as the gateway does, and returns its commitment.
func (d *fixture) settings(policy *source.SignaturePolicy) string {
	d.t.Helper()
	body, err := json.Marshal(source.Settings{Image: "registry.test/harbour:1", Signatures: policy})
	if err != nil {
		d.t.Fatal(err)
	}
	return bodiestest.Put(d.t, d.db.Pool(d.t, "gateway"), events.DefaultTenant, bodies.Source, string(body))
}

// TestGrantsNeedSignatures: a bundle of a catalog with a signature policy gets a grant if the hub finds for itself that
// a key of the policy has signed this content; an indexer that passes off other content, and a resolver that names
// another catalog, get none (ADR 0034).
func TestGrantsNeedSignatures(t *testing.T) {
	t.Parallel()
	t.Run("with a key", func(t *testing.T) {
		t.Parallel()
		grantsNeedSignatures(t, newSigning(t), newSigning(t))
	})
	ann, another := newPerson(t, "ann@people.test"), newPerson(t, "ann@people.test")
	t.Run("with a certificate", func(t *testing.T) {
		t.Parallel()
		grantsNeedSignatures(t, ann, another) // of another instance, for the same name
	})
}

func grantsNeedSignatures(t *testing.T, ours, theirs signatory) {
	t.Helper()
	manifest := gauge("1.0.0", `"get"`)
	signed, another := signedImage(t, ours, manifest), signedImage(t, ours, gauge("1.0.0", `"list"`))
	damaged := bytes.Replace(signed, []byte(`{"config":{}}`), []byte(`{"config":[]}`), 1)
	policy := ours.policy(t)
	sum, err := policy.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		kept    []byte                  // what the indexer keeps of the image
		body    *source.SignaturePolicy // another one than that of the event
		catalog string                  // that the plan names, where it is another
		pkg     string                  // that the plan says the bundle is of, where it is another
		words   string                  // "" is a grant
	}{
		"signed":                          {kept: signed},
		"nothing is kept":                 {words: "is not kept"},
		"signed by a stranger":            {kept: signedImage(t, theirs, manifest), words: oci.ErrUnsigned.Error()},
		"another image that was signed":   {kept: another, words: "holds content"},
		"a damaged image":                 {kept: damaged, words: "asked for"},
		"no image":                        {kept: []byte("signed, believe me"), words: "cannot be read"},
		"more than is ever kept":          {kept: make([]byte, maxEvidenceSize+1), words: "is not kept"},
		"settings with another policy":    {kept: signed, body: theirs.policy(t), words: "another policy"},
		"a plan that names another place": {catalog: "elsewhere", words: "is not kept"},
		"a package that nobody subscribed to, of a place that there is not": {
			catalog: "elsewhere", pkg: "anything", words: "which there is not",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newFixture(t, friday)
			p := ofGauge("1.0.0", d.keep(manifest))
			if c.catalog != "" {
				p.Bundles[0].Catalog = c.catalog
			}
			if c.pkg != "" {
				p.Bundles[0].Package, p.Component = c.pkg, c.pkg
			}
			if c.kept != nil {
				if _, err := d.db.Pool(t, string(events.Indexer)).Exec(t.Context(), `insert into catalog.signed_images
					(tenant, catalog, image, content, evidence) values ($1, 'harbour', 'sha256:i', $2, $3)`,
					events.DefaultTenant, p.Bundles[0].Content, c.kept); err != nil {
					t.Fatal(err)
				}
			}
			if c.body == nil {
				c.body = policy
			}
			d.fold("harbour", events.CatalogAdded{
				Name: "harbour", SourceType: "image", Spec: d.settings(nil),
			})
			d.fold("east/ns/tidegauge", events.SubscriptionCreated{
				Cluster: "east", Namespace: "ns", Name: "tidegauge",
				Spec: events.SubscriptionSpec{Package: "tidegauge", Catalog: "harbour", Approval: "Automatic"},
			})
			d.publishPlan(p)
			if !d.granted() {
				t.Fatal("without a policy it is refused")
			}
			d.fold("harbour", events.CatalogChanged{
				SourceType: "image", Spec: d.settings(c.body), Signatures: string(sum),
			})
			if c.words != "" {
				d.wantRefused(name, events.SignatureNotVerified, c.words)
			} else if !d.granted() {
				t.Error("it is refused")
			}
		})
	}
}
