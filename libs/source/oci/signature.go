package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/signature"
)

const (
	// maxPayload bounds what was signed: names and a digest.
	maxPayload = 64 << 10
	// maxSignatures bounds how many signatures of one image are looked at, of each form.
	maxSignatures = 64
	// maxBundle bounds a bundle of Sigstore: signature, certificate, proofs and a statement of some KB; attestations of
	// the types that a policy counts may say more.
	maxBundle = 1 << 20
	// maxBundleManifest bounds the manifest that holds one: it has one layer.
	maxBundleManifest = 64 << 10
	// maxReasons bounds how many signatures an error tells about.
	maxReasons = 4
	// bundleType is how the types of bundles begin; the version follows.
	bundleType = "application/vnd.dev.sigstore.bundle"
	// annotationPredicate is where a bundle's manifest says which predicate type its statement has.
	annotationPredicate = "dev.sigstore.bundle.predicateType"
)

// ErrUnsigned is in the chain of the error for an image of which nothing satisfies its signature policy.
var ErrUnsigned = errors.New("no signature satisfies the signature policy")

// search looks for a signature that a policy wants.
type search struct {
	store    store
	image    signature.Image
	policy   source.SignaturePolicy
	verifier *signature.Verifier
	// refused says what was wrong with each signature.
	refused []string
}

// signed finds out whether an image was signed as the policy wants it. cosign keeps signatures in the repository of the
// image: under the tag sha256-<digest>.sig, or as bundles that refer to the image. Each may be a lie of the registry,
// and is believed for what it proves alone.
//
// The digest is that of the bytes that were fetched, so that a registry which serves another image under a signed name
// is refused. What another place would have is not known: a mirror without the signatures is as good as an unsigned
// image there, and the next place is asked.
func signed(ctx context.Context, st store, img signature.Image, policy *source.SignaturePolicy) error {
	if policy == nil {
		return nil
	}
	verifier, err := signature.New(*policy)
	if err != nil {
		return err
	}
	s := &search{store: st, image: img, policy: *policy, verifier: verifier}
	for _, look := range []func(context.Context) (bool, error){s.payloads, s.bundles} {
		if found, err := look(ctx); found || err != nil {
			return err
		}
	}
	what := img.Digest
	if img.Name != "" {
		what = img.Name + "@" + img.Digest
	}
	if len(s.refused) == 0 {
		return errs.Wrap(errs.Forbidden, ErrUnsigned, "image %s is refused: it has no signature", what)
	}
	return errs.Wrap(errs.Forbidden, ErrUnsigned, "image %s is refused: %s", what, s.reasons())
}

// reasons are what was wrong, each once.
func (s *search) reasons() string {
	list := slices.Clone(s.refused)
	slices.Sort(list)
	list = slices.Compact(list)
	if more := len(list) - maxReasons; more > 0 {
		list = append(list[:maxReasons], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, "; ")
}

// refuse notes what is wrong with one signature. An error is one for which no other is looked at: the place is away.
func (s *search) refuse(what string, err error) error {
	if errs.Is(err, errs.Unavailable) {
		return err
	}
	s.refused = append(s.refused, what+": "+err.Error())
	return nil
}

// payloads looks at the signatures of cosign's first form: layers of one image under a tag.
func (s *search) payloads(ctx context.Context) (found bool, err error) {
	raw, _, _, err := checked(ctx, s.store, signatureTag(s.image.Digest))
	if errs.Is(err, errs.NotFound) {
		return false, nil
	}
	var m v1.Manifest
	if err == nil && json.Unmarshal(raw, &m) != nil {
		err = errs.New(errs.Invalid, "the manifest of the signatures cannot be read")
	}
	if err != nil {
		return false, s.refuse("signatures", err)
	}
	for i, l := range m.Layers[:min(len(m.Layers), maxSignatures)] {
		payload, err := small(ctx, s.store, l, maxPayload, "what was signed")
		if err == nil {
			err = s.verifier.Payload(s.image, payload, l.Annotations)
		}
		if err == nil {
			return true, nil
		}
		if err := s.refuse(fmt.Sprintf("signature %d", i+1), err); err != nil {
			return false, err
		}
	}
	return false, nil
}

// bundles looks at the bundles of Sigstore that refer to the image.
func (s *search) bundles(ctx context.Context) (found bool, err error) {
	raw, err := s.store.referrers(ctx, s.image.Digest)
	if errs.Is(err, errs.NotFound) {
		return false, nil
	}
	var index manifest
	if err == nil && json.Unmarshal(raw, &index) != nil {
		err = errs.New(errs.Invalid, "the list of what refers to the image cannot be read")
	}
	if err != nil {
		return false, s.refuse("bundles", err)
	}
	looked := 0
	for _, d := range index.Manifests {
		if !strings.HasPrefix(d.ArtifactType, bundleType) || !s.counts(d.Annotations) {
			continue
		}
		looked++
		if looked > maxSignatures {
			return false, s.refuse("bundles", fmt.Errorf("only the first %d of the image are looked at", maxSignatures))
		}
		err := s.bundle(ctx, d)
		if err == nil {
			return true, nil
		}
		if err := s.refuse("bundle "+shortDigest(d), err); err != nil {
			return false, err
		}
	}
	return false, nil
}

// counts reports whether a bundle may be a signature by what its annotations say, so that many or large attestations
// beside it do not hide it. A registry that lies here withholds a signature, as it may in any case.
func (s *search) counts(annotations map[string]string) bool {
	said := annotations[annotationPredicate]
	if said == "" || said == signature.PredicateType || slices.Contains(s.policy.PredicateTypes, said) {
		return true
	}
	s.refused = append(s.refused, "an attestation of type "+quote(said)+" is no signature")
	return false
}

// bundle checks one bundle.
func (s *search) bundle(ctx context.Context, d v1.Descriptor) error {
	if !isDigest(d.Digest.String()) {
		return errs.New(errs.Invalid, "its digest is no sha256 digest")
	}
	if d.Size > maxBundleManifest {
		return errs.New(errs.TooLarge, "its manifest has %d bytes, more than %d", d.Size, maxBundleManifest)
	}
	raw, _, _, err := checked(ctx, s.store, d.Digest.String())
	if err != nil {
		return err
	}
	var m v1.Manifest
	if json.Unmarshal(raw, &m) != nil || len(m.Layers) != 1 ||
		!strings.HasPrefix(string(m.Layers[0].MediaType), bundleType) {
		return errs.New(errs.Invalid, "its manifest does not hold one bundle of Sigstore")
	}
	text, err := small(ctx, s.store, m.Layers[0], maxBundle, "the bundle")
	if err != nil {
		return err
	}
	return s.verifier.Bundle(s.image, text)
}

func shortDigest(d v1.Descriptor) string {
	return d.Digest.Algorithm + ":" + d.Digest.Hex[:min(len(d.Digest.Hex), 12)]
}

// quote keeps small what a registry adds to a message.
func quote(text string) string {
	const most = 120
	return fmt.Sprintf("%q", text[:min(len(text), most)])
}

// signatureTag is under which tag cosign keeps the signatures of an image.
func signatureTag(sum string) string { return referrersTag(sum) + ".sig" }

// referrersTag is under which tag a registry without an interface for it lists what refers to an image.
func referrersTag(sum string) string { return strings.Replace(sum, ":", "-", 1) }
