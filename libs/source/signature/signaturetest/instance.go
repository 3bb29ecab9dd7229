// Package signaturetest is an instance of Sigstore for tests: a certificate authority with its transparency log, a
// log of signatures and a timestamp authority, which issue what cosign stores beside an image. All of it is of the time
// at which it is called, so that a test in a bubble of testing/synctest makes signatures of the year 2000.
package signaturetest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/url"
	"strings"
	"time"

	ct "github.com/google/certificate-transparency-go"
	"github.com/google/certificate-transparency-go/tls"
	ctx509 "github.com/google/certificate-transparency-go/x509"
	"github.com/google/certificate-transparency-go/x509util"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
)

// lifetime is how long a certificate of a signer holds.
const lifetime = 10 * time.Minute

// TB is what is needed of a test.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// Instance is an instance of Sigstore.
type Instance struct {
	t            TB
	virtual      *ca.VirtualSigstore // its log of signatures and its timestamp authority
	authority    *root.FulcioCertificateAuthority
	authorityKey *ecdsa.PrivateKey
	certificates *ecdsa.PrivateKey // of the log of certificates
}

// New starts an instance.
func New(t TB) *Instance {
	t.Helper()
	virtual, err := ca.NewVirtualSigstore()
	must(t, err)
	top, key, err := ca.GenerateRootCa()
	must(t, err)
	between, betweenKey, err := ca.GenerateFulcioIntermediate(top, key)
	must(t, err)
	return &Instance{
		t: t, virtual: virtual, authorityKey: betweenKey, certificates: NewKey(t),
		authority: &root.FulcioCertificateAuthority{
			Root: top, Intermediates: []*x509.Certificate{between}, URI: "https://fulcio.test",
			ValidityPeriodStart: time.Now().Add(-time.Hour), ValidityPeriodEnd: time.Now().Add(time.Hour),
		},
	}
}

// NewKey makes a key with which to sign.
func NewKey(t TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return k
}

// Public is a public key in PEM.
func Public(t TB, k crypto.Signer) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(k.Public())
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func must(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TrustedRoot is what somebody who trusts the instance has of it.
func (in *Instance) TrustedRoot() string {
	in.t.Helper()
	logs := in.virtual.RekorLogs()
	for id, l := range logs {
		raw, err := hex.DecodeString(id)
		must(in.t, err)
		l.ID = raw
	}
	spki, err := x509.MarshalPKIXPublicKey(in.certificates.Public())
	must(in.t, err)
	id := sha256.Sum256(spki)
	tr, err := root.NewTrustedRoot(root.TrustedRootMediaType01, []root.CertificateAuthority{in.authority},
		map[string]*root.TransparencyLog{hex.EncodeToString(id[:]): {
			BaseURL: "https://ct.test", ID: id[:], PublicKey: in.certificates.Public(), HashFunc: crypto.SHA256,
			SignatureHashFunc: crypto.SHA256, ValidityPeriodStart: time.Now().Add(-time.Hour),
			ValidityPeriodEnd: time.Now().Add(time.Hour),
		}}, in.virtual.TimestampingAuthorities(), logs)
	must(in.t, err)
	text, err := json.Marshal(tr)
	must(in.t, err)
	return string(text)
}

// certificate issues one for a key; logged has the log of certificates vouch for it.
func (in *Instance) certificate(key crypto.Signer, issuer, subject string, logged bool) *x509.Certificate {
	in.t.Helper()
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Second), NotAfter: now.Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		ExtraExtensions: []pkix.Extension{{
			Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}, Value: []byte(issuer),
		}},
	}
	if strings.Contains(subject, "://") {
		u, err := url.Parse(subject)
		must(in.t, err)
		template.URIs = []*url.URL{u}
	} else {
		template.EmailAddresses = []string{subject}
	}
	issue := func() *x509.Certificate {
		der, err := x509.CreateCertificate(rand.Reader, template, in.authority.Intermediates[0], key.Public(),
			in.authorityKey)
		must(in.t, err)
		cert, err := x509.ParseCertificate(der)
		must(in.t, err)
		return cert
	}
	first := issue()
	if !logged {
		return first
	}
	template.ExtraExtensions = append(template.ExtraExtensions, in.seen(first))
	return issue()
}

// seen is the extension in which the log of certificates says that it has seen one.
func (in *Instance) seen(cert *x509.Certificate) pkix.Extension {
	in.t.Helper()
	spki, err := x509.MarshalPKIXPublicKey(in.certificates.Public())
	must(in.t, err)
	sct := ct.SignedCertificateTimestamp{
		SCTVersion: ct.V1, LogID: ct.LogID{KeyID: sha256.Sum256(spki)},
		Timestamp: uint64(time.Now().UnixMilli()),
	}
	input, err := ct.SerializeSCTSignatureInput(sct, ct.LogEntry{Leaf: ct.MerkleTreeLeaf{
		LeafType: ct.TimestampedEntryLeafType,
		TimestampedEntry: &ct.TimestampedEntry{
			EntryType: ct.PrecertLogEntryType, Timestamp: sct.Timestamp,
			PrecertEntry: &ct.PreCert{
				IssuerKeyHash:  sha256.Sum256(in.authority.Intermediates[0].RawSubjectPublicKeyInfo),
				TBSCertificate: cert.RawTBSCertificate,
			},
		},
	}})
	must(in.t, err)
	sct.Signature = ct.DigitallySigned{
		Algorithm: tls.SignatureAndHashAlgorithm{Hash: tls.SHA256, Signature: tls.ECDSA},
		Signature: sign(in.t, in.certificates, input),
	}
	list, err := x509util.MarshalSCTsIntoSCTList([]*ct.SignedCertificateTimestamp{&sct})
	must(in.t, err)
	raw, err := tls.Marshal(*list)
	must(in.t, err)
	value, err := asn1.Marshal(raw)
	must(in.t, err)
	return pkix.Extension{Id: asn1.ObjectIdentifier(ctx509.OIDExtensionCTSCT), Value: value}
}

// sign signs as all of Sigstore does with a key of P-256.
func sign(t TB, key crypto.Signer, message []byte) []byte {
	t.Helper()
	sum := sha256.Sum256(message)
	made, err := key.Sign(rand.Reader, sum[:], crypto.SHA256)
	must(t, err)
	return made
}
