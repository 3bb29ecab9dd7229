// Package signature says whether an image was signed as a policy wants it: with a key, or by somebody to whom an
// authority that the policy trusts has given a certificate. It is pure: bytes and policy in, a verdict out. The indexer
// asks before it takes content, the hub before it signs a grant (ADR 0034); both get the same answer whenever they ask,
// since the time at which certificates must have been valid is that of the signature (ADR 0042). Nothing is asked of a
// network.
package signature

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
)

const (
	// payloadType is what a payload of cosign says that it is.
	payloadType = "cosign container image signature"
	// PredicateType is that of cosign's statement that it has signed an image.
	PredicateType = "https://sigstore.dev/cosign/sign/v1"
	// statementType is the type of the payload of an envelope with a statement.
	statementType = "application/vnd.in-toto+json"
	// maxReason bounds what an error says of one signature: names in it come from whoever made it.
	maxReason = 300
)

// Image is what must be signed.
type Image struct {
	// Digest is that of what was fetched: of an image of several platforms the index.
	Digest string
	// Name is the repository by which a catalog, or its settings, name the image; "" for none.
	Name string
}

// Verifier knows what one policy wants.
type Verifier struct {
	policy     source.SignaturePolicy
	keys       []key
	trusted    *root.TrustedRoot       // nil: the policy needs none
	options    []verify.VerifierOption // with a key
	keyless    *verify.Verifier
	identities []verify.PolicyOption
}

// key is one public key, and how Sigstore's library verifies by it.
type key struct {
	public    any
	verifiers []signature.Verifier
}

// New reads a policy. One that cannot be read, or names nobody, is errs.Invalid.
func New(policy source.SignaturePolicy) (*Verifier, error) {
	v := &Verifier{policy: policy}
	for i, text := range policy.Keys {
		k, err := readKey(text)
		if err != nil {
			return nil, errs.New(errs.Invalid, "key %d of the signature policy cannot be read", i+1)
		}
		v.keys = append(v.keys, k)
	}
	if len(policy.Keys)+len(policy.Identities) == 0 {
		return nil, errs.New(errs.Invalid, "the signature policy names neither keys nor identities")
	}
	if policy.TrustedRoot != "" {
		trusted, err := root.NewTrustedRootFromJSON([]byte(policy.TrustedRoot))
		if err != nil {
			return nil, errs.New(errs.Invalid, "the trusted root of the signature policy cannot be read: %s", clean(err))
		}
		v.trusted = trusted
	}
	v.options = thresholds(policy, false)
	for _, id := range policy.Identities {
		one, err := identity(id)
		if err != nil {
			return nil, errs.New(errs.Invalid, "an identity of the signature policy cannot be read: %s", clean(err))
		}
		v.identities = append(v.identities, verify.WithCertificateIdentity(one))
	}
	if len(v.identities) == 0 {
		return v, nil
	}
	if v.trusted == nil {
		return nil, errs.New(errs.Invalid, "the signature policy has identities, and no trusted root to verify them by")
	}
	var err error
	if v.keyless, err = verify.NewVerifier(v.trusted, thresholds(policy, true)...); err != nil {
		return nil, errs.New(errs.Invalid, "the signature policy cannot be used: %s", clean(err))
	}
	return v, nil
}

func readKey(text string) (key, error) {
	public, err := source.ParsePublicKey(text)
	if err != nil {
		return key{}, err
	}
	usual, err := signature.LoadDefaultVerifier(public)
	if err != nil {
		return key{}, err
	}
	k := key{public, []signature.Verifier{usual}}
	if curve, is := public.(*ecdsa.PublicKey); is && curve.Params().BitSize > 256 {
		// cosign hashes with SHA-256 for every curve, other tools with the hash of the curve's size.
		short, err := signature.LoadVerifier(public, crypto.SHA256)
		if err != nil {
			return key{}, err
		}
		k.verifiers = append(k.verifiers, short)
	}
	return k, nil
}

// identity makes the expressions fit the whole of a name: source.WholeRegexp.
func identity(id source.SignerIdentity) (verify.CertificateIdentity, error) {
	whole := func(text string) (string, error) {
		if text == "" {
			return "", nil
		}
		re, err := source.WholeRegexp(text)
		if err != nil {
			return "", err
		}
		return re.String(), nil
	}
	issuer, err := whole(id.IssuerRegexp)
	if err != nil {
		return verify.CertificateIdentity{}, err
	}
	subject, err := whole(id.SubjectRegexp)
	if err != nil {
		return verify.CertificateIdentity{}, err
	}
	return verify.NewShortCertificateIdentity(id.Issuer, issuer, id.Subject, subject)
}

// thresholds are what must vouch for a signature beside key or certificate.
func thresholds(p source.SignaturePolicy, keyless bool) []verify.VerifierOption {
	// What an attestation says matters by its type alone, and may be large.
	out := []verify.VerifierOption{verify.WithoutStatementPredicate()}
	if n := p.Logs(keyless); n > 0 {
		out = append(out, verify.WithTransparencyLog(n))
	}
	switch {
	case p.SignedTimestamps > 0:
		out = append(out, verify.WithSignedTimestamps(p.SignedTimestamps))
	case keyless:
		out = append(out, verify.WithObserverTimestamps(1))
	default:
		out = append(out, verify.WithNoObserverTimestamps())
	}
	if n := p.LogsOfCertificates(); keyless && n > 0 {
		out = append(out, verify.WithSignedCertificateTimestamps(n))
	}
	return out
}

// Payload checks a signature in the form of cosign's first versions: of a payload that names the image, with all else
// in annotations. nil is a signature that the policy wants.
func (v *Verifier) Payload(img Image, payload []byte, annotations map[string]string) error {
	made, err := base64.StdEncoding.DecodeString(annotations[annotationSignature])
	if err != nil || len(made) == 0 {
		return errors.New("it holds no signature")
	}
	name, err := about(payload, img.Digest)
	if err != nil {
		return err
	}
	if err := v.made(payload, made, annotations); err != nil {
		return err
	}
	return v.named(img, name)
}

// made checks who made the signature of a payload.
func (v *Verifier) made(payload, made []byte, annotations map[string]string) error {
	if annotations[annotationCertificate] == "" && v.bare() && len(v.keys) > 0 {
		for _, k := range v.keys {
			if k.made(payload, made) {
				return nil
			}
		}
		return errors.New("none of the keys has made it")
	}
	b, err := fromAnnotations(payload, made, annotations)
	if err != nil {
		return err
	}
	_, err = v.verify(b, func() verify.ArtifactPolicyOption { return verify.WithArtifact(bytes.NewReader(payload)) })
	return err
}

// bare reports whether a key is all that the policy wants of a signature by a key.
func (v *Verifier) bare() bool { return v.policy.Logs(false) == 0 && v.policy.SignedTimestamps == 0 }

// about reads of a payload that is cosign's and about the image of this digest, which name was signed.
func about(payload []byte, sum string) (name string, err error) {
	var p struct {
		Critical struct {
			Identity struct {
				Reference string `json:"docker-reference"`
			} `json:"identity"`
			Image struct {
				Digest string `json:"docker-manifest-digest"`
			} `json:"image"`
			Type string `json:"type"`
		} `json:"critical"`
	}
	switch err := json.Unmarshal(payload, &p); {
	case err != nil:
		return "", errors.New("what was signed cannot be read")
	case p.Critical.Type != payloadType:
		return "", fmt.Errorf("what was signed is %s, and no signature of an image", quoted(p.Critical.Type))
	case p.Critical.Image.Digest != sum:
		return "", fmt.Errorf("it is about the image %s", quoted(p.Critical.Image.Digest))
	}
	return p.Critical.Identity.Reference, nil
}

func (k key) made(payload, signature []byte) bool {
	hash := sha256.Sum256(payload)
	switch k := k.public.(type) {
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(k, hash[:], signature)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(k, crypto.SHA256, hash[:], signature) == nil
	case ed25519.PublicKey:
		return ed25519.Verify(k, payload, signature)
	}
	return false
}

// Bundle checks a bundle of Sigstore: a statement about the image. nil is a signature that the policy wants.
//
// An attestation is signed by the same people as the image, and is about it, but says something else: that here is a
// list of its parts, or that it failed a test. So only the predicate types that mean "signed" count.
func (v *Verifier) Bundle(img Image, raw []byte) error {
	var b bundle.Bundle
	if err := b.UnmarshalJSON(raw); err != nil {
		return fmt.Errorf("it is no bundle of Sigstore that can be read: %s", clean(err))
	}
	if b.GetMessageSignature() != nil {
		return errors.New("it is a bundle with a bare signature, which does not say that it is about an image; sign with " +
			"cosign sign, not sign-blob")
	}
	sum, err := hex.DecodeString(strings.TrimPrefix(img.Digest, "sha256:"))
	if err != nil {
		return errs.New(errs.Invalid, "%q is no digest of an image", img.Digest)
	}
	result, err := v.verify(&b, func() verify.ArtifactPolicyOption { return verify.WithArtifactDigest("sha256", sum) })
	if err != nil {
		return err
	}
	content, err := b.SignatureContent()
	if err != nil {
		return err
	}
	if e := content.EnvelopeContent().RawEnvelope(); e.PayloadType != statementType {
		return fmt.Errorf("what was signed is of type %s, and no statement", quoted(e.PayloadType))
	}
	if t := result.Statement.GetPredicateType(); t != PredicateType && !slices.Contains(v.policy.PredicateTypes, t) {
		return fmt.Errorf("it is an attestation of type %s, which is no signature of the image; the policy counts %s",
			quoted(t), strings.Join(append([]string{PredicateType}, v.policy.PredicateTypes...), ", "))
	}
	var why error
	for _, s := range result.Statement.GetSubject() {
		if s.GetDigest()["sha256"] != hex.EncodeToString(sum) {
			continue
		}
		if why = v.named(img, s.GetName()); why == nil {
			return nil
		}
	}
	if why == nil {
		why = errors.New("its statement is about another image")
	}
	return why
}

// verify checks a bundle by its own sort: by keys, or by the certificate in it.
func (v *Verifier) verify(b *bundle.Bundle, artifact func() verify.ArtifactPolicyOption) (
	*verify.VerificationResult, error,
) {
	content, err := b.VerificationContent()
	if err != nil {
		return nil, errors.New(clean(err))
	}
	if content.Certificate() != nil {
		if v.keyless == nil {
			return nil, errors.New("it was made with a certificate, and the policy has keys alone")
		}
		result, err := v.keyless.Verify(b, verify.NewPolicy(artifact(), v.identities...))
		if err != nil {
			return nil, errors.New(clean(err))
		}
		return result, nil
	}
	if len(v.keys) == 0 {
		return nil, errors.New("it was made with a key, and the policy has identities of certificates alone")
	}
	for _, k := range v.keys {
		for _, one := range k.verifiers {
			var by *verify.Verifier
			if by, err = verify.NewVerifier(v.with(one), v.options...); err != nil {
				return nil, errors.New(clean(err))
			}
			var result *verify.VerificationResult
			result, err = by.Verify(b, verify.NewPolicy(artifact(), verify.WithKey()))
			if err == nil {
				return result, nil
			}
		}
	}
	return nil, fmt.Errorf("by none of the keys: %s", clean(err))
}

// with is what the policy trusts, with one of its keys: the name that a bundle gives its key is anybody's to choose.
func (v *Verifier) with(one signature.Verifier) root.TrustedMaterial {
	material := root.TrustedMaterialCollection{
		root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
			return root.NewExpiringKey(one, time.Time{}, time.Time{}), nil
		}),
	}
	if v.trusted != nil {
		material = append(material, v.trusted)
	}
	return material
}

// named compares the name that was signed with those that the policy wants.
func (v *Verifier) named(img Image, signed string) error {
	if !v.policy.Named() {
		return nil
	}
	name := repositoryOf(signed)
	switch {
	case name == "":
		return errors.New("it does not say which repository was signed, and the policy wants to know")
	case v.policy.MatchRepository && name != repositoryOf(img.Name):
		return fmt.Errorf("matchRepository: repository %s was signed, the image is named %s", quoted(name),
			quoted(img.Name))
	case len(v.policy.Repositories) > 0 && !slices.ContainsFunc(v.policy.Repositories, func(pattern string) bool {
		return within(name, pattern)
	}):
		return fmt.Errorf("repositories: repository %s was signed, which is none of the policy", quoted(name))
	}
	return nil
}

// within reports whether a repository is the one of a pattern, or below it.
func within(name, pattern string) bool {
	if above, below := strings.CutSuffix(pattern, "*"); below {
		return strings.HasPrefix(name, repositoryOf(above + "x")[:len(repositoryOf(above+"x"))-1])
	}
	return name == repositoryOf(pattern)
}

// repositoryOf is the repository of a reference, with or without tag and digest, by one name for each registry.
func repositoryOf(reference string) string {
	name, _, _ := strings.Cut(reference, "@")
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		name = name[:colon]
	}
	host, rest, ok := strings.Cut(name, "/")
	if !ok {
		return ""
	}
	if host = strings.ToLower(host); host == "index.docker.io" { // as go-containerregistry, and so cosign, calls it
		host = "docker.io"
	}
	return host + "/" + rest
}

// clean is the text of an error about what anybody may have written: bounded, in one line and without escapes.
func clean(err error) string { return cleanText(err.Error()) }

func cleanText(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return text
}

func quoted(text string) string { return `"` + cleanText(text) + `"` }
