package signaturetest

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/tlog"
)

// Forms in which a signature is stored.
const (
	// BundleType is the media type of a bundle.
	BundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	// SignPredicate is the predicate type of cosign's signature.
	SignPredicate = "https://sigstore.dev/cosign/sign/v1"

	statementType = "application/vnd.in-toto+json"
)

// Signing says how an image is signed.
type Signing struct {
	// Key signs; with Issuer or Subject it is one that is made for a certificate for them.
	Key             crypto.Signer
	Issuer, Subject string
	// Digest is that of the image, Name its repository.
	Digest, Name string
	// Predicate is the type of the statement; "" is that of a signature.
	Predicate string
	// Padding is how many bytes the predicate has.
	Padding int
	// Log is the instance in whose log the signature is; nil is none. Timestamped has it dated.
	Log         *Instance
	Timestamped bool
	// Unseen leaves the certificate out of the log of certificates.
	Unseen bool
	// After is how long after it was certified the key signs.
	After time.Duration
}

type object map[string]any

// material is key or certificate, and what it goes by in a log.
func (in *Instance) material(s *Signing) (cert *x509.Certificate, logged []byte) {
	in.t.Helper()
	if s.Issuer+s.Subject == "" {
		return nil, []byte(Public(in.t, s.Key))
	}
	s.Key = NewKey(in.t)
	cert = in.certificate(s.Key, s.Issuer, s.Subject, !s.Unseen)
	time.Sleep(s.After) //nolint:forbidigo // in the clock of synctest, which does not wait
	return cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
}

// Bundle is what cosign stores of a signature: a bundle of Sigstore.
func (in *Instance) Bundle(s Signing) []byte {
	in.t.Helper()
	cert, logged := in.material(&s)
	if s.Predicate == "" {
		s.Predicate = SignPredicate
	}
	payload := in.json(object{
		"_type": "https://in-toto.io/Statement/v1", "predicateType": s.Predicate,
		"predicate": object{"padding": strings.Repeat("x", s.Padding)},
		"subject":   []object{{"name": s.Name, "digest": object{"sha256": strings.TrimPrefix(s.Digest, "sha256:")}}},
	})
	made := sign(in.t, s.Key, fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(statementType), statementType, len(payload),
		payload))
	envelope := object{
		"payload": payload, "payloadType": statementType, "signatures": []object{{"sig": made}},
	}
	material := object{}
	if cert != nil {
		material["certificate"] = object{"rawBytes": cert.Raw}
	} else {
		material["publicKey"] = object{"hint": "whatever"}
	}
	if s.Log != nil {
		body := in.json(object{"apiVersion": "0.0.1", "kind": "dsse", "spec": object{
			"envelopeHash": sum(in.json(envelope)), "payloadHash": sum(payload),
			"signatures": []object{{"signature": base64.StdEncoding.EncodeToString(made), "verifier": logged}},
		}})
		material["tlogEntries"] = []object{s.Log.entry(body, "dsse")}
	}
	if s.Timestamped {
		at, err := in.virtual.TimestampResponse(made)
		must(in.t, err)
		material["timestampVerificationData"] = object{"rfc3161Timestamps": []object{{"signedTimestamp": at}}}
	}
	return in.json(object{"mediaType": BundleType, "verificationMaterial": material, "dsseEnvelope": envelope})
}

// Payload is what cosign's first versions store of a signature: a payload, and annotations of it.
func (in *Instance) Payload(s Signing) (payload []byte, annotations map[string]string) {
	in.t.Helper()
	cert, logged := in.material(&s)
	payload = fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q},`+
		`"type":"cosign container image signature"},"optional":null}`, s.Name, s.Digest)
	made := sign(in.t, s.Key, payload)
	annotations = map[string]string{
		"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(made),
	}
	if cert != nil {
		annotations["dev.sigstore.cosign/certificate"] = string(logged)
	}
	if s.Log != nil {
		body := in.json(object{"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": object{
			"data":      object{"hash": sum(payload)},
			"signature": object{"content": made, "publicKey": object{"content": logged}},
		}})
		promise, id := s.Log.promise(body)
		annotations["dev.sigstore.cosign/bundle"] = string(in.json(object{
			"SignedEntryTimestamp": promise,
			"Payload": object{
				"body": body, "integratedTime": time.Now().Unix(), "logIndex": 0, "logID": id,
			},
		}))
	}
	if s.Timestamped {
		at, err := in.virtual.TimestampResponse(made)
		must(in.t, err)
		annotations["dev.sigstore.cosign/rfc3161timestamp"] = string(in.json(object{"SignedRFC3161Timestamp": at}))
	}
	return payload, annotations
}

// promise is the log's signature that it has an entry as of now.
func (in *Instance) promise(body []byte) (made []byte, logID string) {
	in.t.Helper()
	id, err := in.virtual.RekorLogID()
	must(in.t, err)
	made, err = in.virtual.RekorSignPayload(tlog.RekorPayload{
		Body: base64.StdEncoding.EncodeToString(body), IntegratedTime: time.Now().Unix(), LogID: id,
	})
	must(in.t, err)
	return made, id
}

// entry puts a body into the log.
func (in *Instance) entry(body []byte, kind string) object {
	in.t.Helper()
	promise, id := in.promise(body)
	rawID, err := hex.DecodeString(id)
	must(in.t, err)
	proof, err := in.virtual.GetInclusionProof(body)
	must(in.t, err)
	top, err := hex.DecodeString(*proof.RootHash)
	must(in.t, err)
	return object{
		"logIndex": 0, "logId": object{"keyId": rawID}, "integratedTime": time.Now().Unix(),
		"kindVersion":      object{"kind": kind, "version": "0.0.1"},
		"inclusionPromise": object{"signedEntryTimestamp": promise}, "canonicalizedBody": body,
		"inclusionProof": object{
			"logIndex": 0, "rootHash": top, "treeSize": *proof.TreeSize, "hashes": []string{},
			"checkpoint": object{"envelope": *proof.Checkpoint},
		},
	}
}

func sum(data []byte) object {
	h := sha256.Sum256(data)
	return object{"algorithm": "sha256", "value": hex.EncodeToString(h[:])}
}

func (in *Instance) json(v any) []byte {
	in.t.Helper()
	raw, err := json.Marshal(v)
	must(in.t, err)
	return raw
}
