package oci

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/signature"
)

const (
	// annotationSignature is where cosign keeps the signature of a layer's payload.
	annotationSignature = "dev.cosignproject.cosign/signature"
	// maxPayload bounds what was signed: names and a digest.
	maxPayload = 64 << 10
	// maxSignatures bounds how many signatures of one image are looked at.
	maxSignatures = 64
)

// ErrUnsigned is in the chain of the error for an image that no key of its policy has signed.
var ErrUnsigned = errors.New("no key of the signature policy has signed it")

// signed finds out whether a key of the policy has signed the image of this digest: cosign keeps signatures in the same
// repository under the tag sha256-<digest>.sig. Each may be a lie of the registry, and is believed for its key alone.
//
// The digest is that of the bytes that were fetched, so that a registry which serves another image under a signed name
// is refused. What another place would have is not known: a mirror without the signatures is as good as an unsigned
// image there, and the next place is asked.
func signed(ctx context.Context, s store, sum string, policy *source.SignaturePolicy) error {
	if policy == nil {
		return nil
	}
	keys, err := signature.KeysOf(*policy)
	if err != nil {
		return err
	}
	unsigned := errs.Wrap(errs.Forbidden, ErrUnsigned, "image %s is refused", sum)
	raw, _, _, err := checked(ctx, s, signatureTag(sum))
	if errs.Is(err, errs.NotFound) {
		return unsigned
	}
	if err != nil {
		return err
	}
	var m v1.Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return unsigned
	}
	for _, l := range m.Layers[:min(len(m.Layers), maxSignatures)] {
		bytes, err := base64.StdEncoding.DecodeString(l.Annotations[annotationSignature])
		if err != nil || len(bytes) == 0 {
			continue
		}
		payload, err := small(ctx, s, l, maxPayload, "what was signed")
		if errs.Is(err, errs.Unavailable) {
			return err
		}
		if err == nil && keys.Signed(sum, payload, bytes) {
			return nil
		}
	}
	return unsigned
}

// signatureTag is under which tag cosign keeps the signatures of an image.
func signatureTag(sum string) string { return strings.Replace(sum, ":", "-", 1) + ".sig" }
