package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/render"
)

const (
	// Validity is how long a certificate holds (R-CSV-40).
	Validity = 730 * 24 * time.Hour
	// RenewBefore is how long before its end it is renewed.
	RenewBefore = 24 * time.Hour
	// overdueBefore is how long before its end it is renewed even in the middle of an upgrade, which may be stuck.
	overdueBefore = RenewBefore / 2

	// skew is how far the clock of an API server may be behind ours.
	skew = 5 * time.Minute
	// serialBytes is as much as a serial number may have.
	serialBytes = 20

	organization = "Chandler"
	pemCert      = "CERTIFICATE"
	pemKey       = "EC PRIVATE KEY"
	keyCert      = "tls.crt"
	keyKey       = "tls.key"
)

// Keys are two fresh P-256 keys.
type Keys struct {
	CA      *ecdsa.PrivateKey
	Serving *ecdsa.PrivateKey
}

// Certificate is the content of a Secret, in PEM.
type Certificate struct {
	CA   []byte // the CA that signed Cert, then the former one while it is valid
	Cert []byte
	Key  []byte
}

// Issue makes a certificate for the hosts. former is the CA of the certificate before, or nil.
func Issue(now time.Time, hosts []string, keys Keys, former []byte) (Certificate, error) {
	ca, err := sign(template(now, keys.CA, true, nil), nil, keys.CA, keys.CA)
	if err != nil {
		return Certificate{}, err
	}
	leaf, err := sign(template(now, keys.Serving, false, hosts), ca, keys.Serving, keys.CA)
	if err != nil {
		return Certificate{}, err
	}
	key, err := x509.MarshalECPrivateKey(keys.Serving)
	if err != nil {
		return Certificate{}, errs.Wrap(errs.Internal, err, "encode the key of %s", hosts)
	}
	authority := encode(pemCert, ca.Raw)
	if old := first(former); old != nil && now.Before(old.NotAfter) {
		authority = append(authority, encode(pemCert, old.Raw)...)
	}
	return Certificate{CA: authority, Cert: encode(pemCert, leaf.Raw), Key: encode(pemKey, key)}, nil
}

// template describes a certificate. Its serial number is the hash of its key, which is drawn at random.
func template(now time.Time, key *ecdsa.PrivateKey, isCA bool, hosts []string) *x509.Certificate {
	name := pkix.Name{Organization: []string{organization}}
	t := &x509.Certificate{
		NotBefore: now.Add(-skew), NotAfter: now.Add(Validity), BasicConstraintsValid: true,
		IsCA: isCA, DNSNames: hosts,
	}
	t.KeyUsage, t.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	sum := sha256.Sum256(append(key.X.Bytes(), key.Y.Bytes()...))
	t.SubjectKeyId = sum[:serialBytes]
	t.SerialNumber = new(big.Int).Rsh(new(big.Int).SetBytes(sum[:serialBytes]), 1)
	if isCA {
		t.KeyUsage, t.ExtKeyUsage = x509.KeyUsageCertSign, nil
		name.CommonName = "ca-" + hex.EncodeToString(sum[:8]) // two CAs of one name cannot be told apart
	} else {
		name.CommonName = hosts[0]
	}
	t.Subject = name
	return t
}

// sign returns the certificate of key, signed by signer; a nil parent signs itself. Without a source of
// randomness ECDSA signs deterministically (RFC 6979).
func sign(t, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (*x509.Certificate, error) {
	if parent == nil {
		parent = t
	}
	raw, err := x509.CreateCertificate(nil, t, parent, key.Public(), signer)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "make a certificate for %s", t.Subject)
	}
	return x509.ParseCertificate(raw)
}

func encode(kind string, raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw})
}

// first returns the first certificate of a PEM text, nil where there is none.
func first(text []byte) *x509.Certificate {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return c
}

// FromData reads the data of a Secret.
func FromData(data map[string][]byte) Certificate {
	return Certificate{CA: data[render.KeyCA], Cert: data[keyCert], Key: data[keyKey]}
}

// Data is the data of a Secret of type kubernetes.io/tls.
func (c Certificate) Data() map[string][]byte {
	return map[string][]byte{render.KeyCA: c.CA, keyCert: c.Cert, keyKey: c.Key}
}

// Hash names the CA on the Secret and on pods (olmcahash): SHA-256 in hexadecimal.
func (c Certificate) Hash() string {
	sum := sha256.Sum256(c.CA)
	return hex.EncodeToString(sum[:])
}

// Times are when a certificate was made and when it is to be renewed; zero for one that cannot be read.
func (c Certificate) Times() (updated, rotateAt time.Time) {
	leaf := first(c.Cert)
	if leaf == nil {
		return time.Time{}, time.Time{}
	}
	return leaf.NotBefore.Add(skew), leaf.NotAfter.Add(-RenewBefore)
}

// Due reports whether it is time to renew a certificate.
func (c Certificate) Due(now time.Time) bool {
	_, rotateAt := c.Times()
	return !now.Before(rotateAt)
}

// Overdue reports whether the renewal of a certificate does not wait any longer.
func (c Certificate) Overdue(now time.Time) bool {
	return c.Due(now.Add(overdueBefore - RenewBefore))
}

// Problem says why a certificate cannot be used, "" for a good one.
func (c Certificate) Problem(now time.Time, hosts []string) string {
	leaf, ca := first(c.Cert), first(c.CA)
	if leaf == nil || ca == nil {
		return "it holds no certificate with its CA"
	}
	if _, err := tls.X509KeyPair(c.Cert, c.Key); err != nil {
		return "its key is not the one of the certificate"
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now}); err != nil {
		return err.Error()
	}
	if !slices.Equal(leaf.DNSNames, hosts) {
		return "it is for other hosts"
	}
	return ""
}

// Equal reports whether two hold the same.
func (c Certificate) Equal(o Certificate) bool {
	return bytes.Equal(c.CA, o.CA) && bytes.Equal(c.Cert, o.Cert) && bytes.Equal(c.Key, o.Key)
}
