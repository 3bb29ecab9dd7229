package source

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"regexp"
	"strings"

	"github.com/chandler-fleet/chandler/libs/digest"
)

// Rules that a signature policy may break.
const (
	RulePublicKey    = "public-key"
	RuleIdentity     = "signer-identity"
	RuleTrustedRoot  = "trusted-root"
	RuleSignedAt     = "signing-time"
	RuleThreshold    = "threshold"
	RuleRepository   = "image-repository"
	RulePredicate    = "predicate-type"
	RuleNameOfLayout = "image-without-name"
)

// Bounds of a signature policy.
const (
	// MaxSigners is how many keys, and how many identities, a policy may name: two overlap in a rotation, a few
	// publishers share a catalog.
	MaxSigners = 16
	// MaxPublicKey bounds one public key in PEM; the largest, of RSA with 16 KBit, has 3 KB.
	MaxPublicKey = 8 << 10
	// MaxIdentity bounds issuer and subject of an identity: the address of a workflow has some 200 characters.
	MaxIdentity = 1024
	// MaxThreshold bounds how many logs or authorities must vouch: nobody writes to more.
	MaxThreshold = 8
	// MaxSignedNames bounds the repositories and the predicate types of a policy.
	MaxSignedNames = 32
	// MaxPredicateType bounds the address of a predicate type.
	MaxPredicateType = 256
)

// SignaturePolicy says who must have signed the catalog image and every bundle image that it names. One of the keys or
// identities is enough; all else that the policy demands must be true of that signature. It is about sources of type
// image, and needs no network: whatever it trusts is in it.
type SignaturePolicy struct {
	// Keys are public keys in PEM, as cosign generate-key-pair writes them.
	Keys []string `json:"keys,omitempty"`
	// Identities are those of certificates for keyless signatures.
	Identities []SignerIdentity `json:"identities,omitempty"`
	// TrustedRoot is a trusted_root.json of Sigstore: the certificate authorities, logs and timestamp authorities that
	// are believed.
	TrustedRoot string `json:"trustedRoot,omitempty"`
	// LogEntries is in how many transparency logs the signature must be. nil is 1 for identities and 0 for keys.
	LogEntries *int `json:"logEntries,omitempty"`
	// CertificateLogs is how many certificate transparency logs must have seen the certificate of an identity; nil is
	// 1.
	CertificateLogs *int `json:"certificateLogs,omitempty"`
	// SignedTimestamps is how many timestamp authorities must have dated the signature. With 0 the time of a log
	// suffices for a certificate, which always needs one of both.
	SignedTimestamps int `json:"signedTimestamps,omitempty"`
	// PredicateTypes are those whose attestations count as a signature, beside cosign's own.
	PredicateTypes []string `json:"predicateTypes,omitempty"`
	// MatchRepository wants the repository that was signed to be the one by which the image is named, whichever mirror
	// it comes from.
	MatchRepository bool `json:"matchRepository,omitempty"`
	// Repositories are those of which the one that was signed must be; with /* at the end all below.
	Repositories []string `json:"repositories,omitempty"`
}

// SignerIdentity is who a certificate must be for: of issuer and subject each either the value or a regular expression
// for the whole of it.
type SignerIdentity struct {
	Issuer        string `json:"issuer,omitempty"`
	IssuerRegexp  string `json:"issuerRegexp,omitempty"`
	Subject       string `json:"subject,omitempty"`
	SubjectRegexp string `json:"subjectRegexp,omitempty"`
}

// Logs is in how many transparency logs a signature must be.
func (p *SignaturePolicy) Logs(keyless bool) int { return or(p.LogEntries, keyless) }

// LogsOfCertificates is how many certificate transparency logs must have seen a certificate.
func (p *SignaturePolicy) LogsOfCertificates() int { return or(p.CertificateLogs, true) }

// Named reports whether the name that was signed matters.
func (p *SignaturePolicy) Named() bool { return p.MatchRepository || len(p.Repositories) > 0 }

// or is a number, else 1 where there is to be one.
func or(n *int, one bool) int {
	switch {
	case n != nil:
		return *n
	case one:
		return 1
	default:
		return 0
	}
}

// policyType is the type prefix of the digest of a policy.
const policyType = "chandler.signature-policy.v1"

// Digest names a policy in events, so that every change of it is one, and no other can be put in its place; "" for
// none.
func (p *SignaturePolicy) Digest() (digest.Digest, error) {
	if p == nil {
		return "", nil
	}
	return digest.JSON(policyType, p)
}

// signatures checks a policy.
func (c *checker) signatures(t Type, s Settings) {
	const at = "/signatures"
	p := s.Signatures
	if p == nil {
		return
	}
	if t != Image {
		c.addf(at, RuleNotForType, "a signature policy is for sources of type %s: of others nothing is signed", Image)
	}
	if len(p.Keys)+len(p.Identities) == 0 || len(p.Keys) > MaxSigners || len(p.Identities) > MaxSigners {
		c.addf(at+"/keys", RuleRequired, "a signature policy names one to %d public keys, or as many identities of "+
			"certificates, or both", MaxSigners)
	}
	for i, k := range p.Keys {
		if _, err := ParsePublicKey(k); err != nil {
			c.addf(at+"/keys", RulePublicKey, "key %d of the signature policy is no public key in PEM: want one of "+
				"ECDSA, RSA or Ed25519, as cosign public-key writes it", i+1)
		}
	}
	for i, id := range p.Identities {
		c.identity(fmt.Sprintf("%s/identities/%d", at, i), id)
	}
	c.thresholds(at, p)
	c.trustedRoot(at+"/trustedRoot", p)
	c.signedNames(at, s)
}

// identity checks who a certificate must be for.
func (c *checker) identity(at string, id SignerIdentity) {
	for _, f := range []struct{ name, value, regexp string }{
		{"issuer", id.Issuer, id.IssuerRegexp}, {"subject", id.Subject, id.SubjectRegexp},
	} {
		switch _, err := WholeRegexp(f.regexp); {
		case (f.value == "") == (f.regexp == ""):
			c.addf(at+"/"+f.name, RuleIdentity, "an identity has either %s or %sRegexp, and not both", f.name, f.name)
		case len(f.value) > MaxIdentity || len(f.regexp) > MaxIdentity:
			c.addf(at+"/"+f.name, RuleMaxLength, "%s of an identity has more than %d characters", f.name, MaxIdentity)
		case err != nil:
			c.addf(at+"/"+f.name+"Regexp", RuleIdentity, "%q is no regular expression of Go (RE2)", shorten(f.regexp))
		}
	}
}

// WholeRegexp compiles an expression that is to fit the whole of a text: one that fits a part of it would let in
// everybody whose name contains that of the signer.
func WholeRegexp(text string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(text); err != nil { // by itself: a bracket in it must not close the one around it
		return nil, err
	}
	return regexp.Compile(`\A(?:` + text + `)\z`)
}

// thresholds checks how many must vouch for a signature.
func (c *checker) thresholds(at string, p *SignaturePolicy) {
	for _, f := range []struct {
		name  string
		value int
	}{
		{"logEntries", p.Logs(false)},
		{"certificateLogs", p.LogsOfCertificates()},
		{"signedTimestamps", p.SignedTimestamps},
	} {
		if f.value < 0 || f.value > MaxThreshold {
			c.addf(at+"/"+f.name, RuleThreshold, "%s is %d; want 0 to %d", f.name, f.value, MaxThreshold)
		}
	}
	if len(p.Identities) > 0 && p.Logs(true) == 0 && p.SignedTimestamps == 0 {
		c.addf(at+"/signedTimestamps", RuleSignedAt, "without an entry in a transparency log nothing says when a "+
			"certificate was used, which holds for minutes: want signedTimestamps of 1 or more where logEntries is 0")
	}
	if p.CertificateLogs != nil && len(p.Identities) == 0 {
		c.addf(at+"/certificateLogs", RuleThreshold,
			"certificateLogs is about certificates; the policy has no identities")
	}
}

// signedName reports whether a name is that of a repository, or with /* at its end all below.
func signedName(name string) bool {
	host, repository, ok := strings.Cut(strings.TrimSuffix(name, "/*"), "/")
	if !ok {
		return looksLikeHost(host) && reHost.MatchString(host) && strings.HasSuffix(name, "/*")
	}
	return len(name) <= MaxReference && looksLikeHost(host) && reHost.MatchString(host) &&
		reRepository.MatchString(repository)
}

// signedNames checks what a signature must say of the name of the image, and of itself.
func (c *checker) signedNames(at string, s Settings) {
	p := s.Signatures
	if len(p.Repositories) > MaxSignedNames || len(p.PredicateTypes) > MaxSignedNames {
		c.addf(at, RuleMaxItems, "a signature policy has at most %d repositories and predicateTypes", MaxSignedNames)
		return
	}
	for i, name := range p.Repositories {
		if !signedName(name) {
			c.addf(fmt.Sprintf("%s/repositories/%d", at, i), RuleRepository, "%q is no repository; write "+
				"registry/repository, or registry/path/* for all below, without tag or digest", shorten(name))
		}
	}
	for i, name := range p.PredicateTypes {
		if !strings.Contains(name, ":") || strings.ContainsAny(name, " \t\r\n") || len(name) > MaxPredicateType {
			c.addf(fmt.Sprintf("%s/predicateTypes/%d", at, i), RulePredicate, "%q is no address of a predicate type, "+
				"such as https://slsa.dev/provenance/v1", shorten(name))
		}
	}
	if p.MatchRepository && s.Path != "" {
		c.addf(at+"/matchRepository", RuleNameOfLayout, "the image of an OCI layout on disk has no name to compare "+
			"with; say in repositories which names may be signed")
	}
}

// ParsePublicKey reads one public key in PEM.
func ParsePublicKey(text string) (any, error) {
	block, rest := pem.Decode([]byte(text))
	if block == nil || len(text) > MaxPublicKey || len(bytes.TrimSpace(rest)) > 0 {
		return nil, x509.ErrUnsupportedAlgorithm
	}
	k, err := x509.ParsePKIXPublicKey(block.Bytes)
	switch k.(type) {
	case *ecdsa.PublicKey, *rsa.PublicKey, ed25519.PublicKey:
		return k, err
	}
	return nil, x509.ErrUnsupportedAlgorithm
}
