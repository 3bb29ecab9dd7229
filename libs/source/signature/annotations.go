package signature

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"

	"github.com/sigstore/sigstore-go/pkg/bundle"
)

// Annotations in which cosign's first versions keep a signature, and what vouches for it.
const (
	annotationSignature   = "dev.cosignproject.cosign/signature"
	annotationCertificate = "dev.sigstore.cosign/certificate"
	annotationLog         = "dev.sigstore.cosign/bundle"
	annotationTimestamp   = "dev.sigstore.cosign/rfc3161timestamp"
)

// bundleType is the form of bundles to which the annotations say as much.
const bundleType = "application/vnd.dev.sigstore.bundle+json;version=0.1"

// object is one of JSON.
type object map[string]any

// fromAnnotations makes a bundle of Sigstore of a signature, so that both forms are verified by the same rules. The
// certificates between the signer's and the authority's come from the trusted root.
func fromAnnotations(payload, made []byte, annotations map[string]string) (*bundle.Bundle, error) {
	sum := sha256.Sum256(payload)
	material := object{}
	if text := annotations[annotationCertificate]; text != "" {
		block, _ := pem.Decode([]byte(text))
		if block == nil {
			return nil, errors.New("its certificate cannot be read")
		}
		material["x509CertificateChain"] = object{"certificates": []object{{"rawBytes": block.Bytes}}}
	} else {
		material["publicKey"] = object{}
	}
	if text := annotations[annotationLog]; text != "" {
		entry, err := logEntry(text)
		if err != nil {
			return nil, err
		}
		material["tlogEntries"] = []object{entry}
	}
	if text := annotations[annotationTimestamp]; text != "" {
		var t struct {
			Signed []byte `json:"SignedRFC3161Timestamp"`
		}
		if json.Unmarshal([]byte(text), &t) != nil {
			return nil, errors.New("its timestamp cannot be read")
		}
		material["timestampVerificationData"] = object{"rfc3161Timestamps": []object{{"signedTimestamp": t.Signed}}}
	}
	raw, err := json.Marshal(object{
		"mediaType": bundleType, "verificationMaterial": material,
		"messageSignature": object{
			"messageDigest": object{"algorithm": "SHA2_256", "digest": sum[:]}, "signature": made,
		},
	})
	if err != nil {
		return nil, err
	}
	var b bundle.Bundle
	if err := b.UnmarshalJSON(raw); err != nil {
		return nil, errors.New(clean(err))
	}
	return &b, nil
}

// logEntry is the entry of a transparency log that an annotation holds.
func logEntry(text string) (object, error) {
	bad := errors.New("its entry of a transparency log cannot be read")
	var l struct {
		Promise []byte `json:"SignedEntryTimestamp"`
		Payload struct {
			Body  string `json:"body"`
			Time  int64  `json:"integratedTime"`
			Index int64  `json:"logIndex"`
			LogID string `json:"logID"`
		} `json:"Payload"`
	}
	if json.Unmarshal([]byte(text), &l) != nil {
		return nil, bad
	}
	id, err := hex.DecodeString(l.Payload.LogID)
	if err != nil {
		return nil, bad
	}
	body, err := base64.StdEncoding.DecodeString(l.Payload.Body)
	if err != nil {
		return nil, bad
	}
	var kind struct {
		Kind    string `json:"kind"`
		Version string `json:"apiVersion"`
	}
	if json.Unmarshal(body, &kind) != nil {
		return nil, bad
	}
	return object{
		"logIndex": l.Payload.Index, "logId": object{"keyId": id}, "integratedTime": l.Payload.Time,
		"kindVersion":      object{"kind": kind.Kind, "version": kind.Version},
		"inclusionPromise": object{"signedEntryTimestamp": l.Promise}, "canonicalizedBody": body,
	}, nil
}
