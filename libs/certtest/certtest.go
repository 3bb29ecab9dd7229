// Package certtest makes certificates for the tests of TLS.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// validity of what is made: longer than any test.
const validity = 24 * time.Hour

// Authority signs certificates.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority makes an authority that nobody trusts yet.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:  x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		Subject:   pkix.Name{CommonName: "authority of a test"},
		NotBefore: time.Now().Add(-validity), NotAfter: time.Now().Add(validity),
	}
	a.certificate = sign(t, template, template, a.key, a.key)
	return a
}

// PEM is the authority's own certificate.
func (a *Authority) PEM() string { return encode("CERTIFICATE", a.certificate.Raw) }

// Issue makes a certificate, of a server at these addresses or of a client, and its key, in PEM.
func (a *Authority) Issue(t testing.TB, addresses ...string) (certificate, key string) {
	t.Helper()
	return a.IssueAs(t, func(template *x509.Certificate) {
		for _, address := range addresses {
			template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
		}
	})
}

// IssueAs is Issue for a certificate that is changed before it is signed.
func (a *Authority) IssueAs(t testing.TB, change func(*x509.Certificate)) (certificate, key string) {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   time.Now().Add(-validity), NotAfter: time.Now().Add(validity),
	}
	change(template)
	private := newKey(t)
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return encode("CERTIFICATE", sign(t, template, a.certificate, private, a.key).Raw), encode("PRIVATE KEY", raw)
}

// Revoke makes a list of revoked certificates, in PEM, that is good until next.
func (a *Authority) Revoke(t testing.TB, next time.Time, serials ...int64) string {
	t.Helper()
	return a.RevokeAs(t, next, nil, serials...)
}

// RevokeAs is Revoke for a list with further extensions.
func (a *Authority) RevokeAs(t testing.TB, next time.Time, more []pkix.Extension, serials ...int64) string {
	t.Helper()
	list := &x509.RevocationList{
		Number: big.NewInt(1), ThisUpdate: time.Now().Add(-validity), NextUpdate: next, ExtraExtensions: more,
	}
	for _, n := range serials {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{
			SerialNumber: big.NewInt(n), RevocationTime: time.Now(),
		})
	}
	raw, err := x509.CreateRevocationList(rand.Reader, list, a.certificate, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return encode("X509 CRL", raw)
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, template, parent *x509.Certificate, of, by *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, of.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func encode(kind string, raw []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}))
}
