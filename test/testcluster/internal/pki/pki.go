// Package pki makes the keys and certificates of a test cluster.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

const (
	lifetime = 365 * 24 * time.Hour // no test cluster lives longer
	backdate = time.Hour            // so that a clock that is a little behind does no harm
)

// Pair is a certificate and its private key, both in PEM.
type Pair struct{ Cert, Key []byte }

// Authority signs certificates.
type Authority struct {
	Pair
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Request says what a certificate is for.
type Request struct {
	User   string   // common name
	Groups []string // organizations: Kubernetes reads groups from them
	Hosts  []string // names and addresses; where there are some, the certificate may serve
}

// NewAuthority makes an authority that signs itself.
func NewAuthority(name string) (*Authority, error) {
	template := template(pkix.Name{CommonName: name})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage |= x509.KeyUsageCertSign
	key, keyPEM, err := newKey()
	if err != nil {
		return nil, fmt.Errorf("authority %s: %w", name, err)
	}
	cert, certPEM, err := sign(template, template, key, key)
	if err != nil {
		return nil, fmt.Errorf("authority %s: %w", name, err)
	}
	return &Authority{Pair: Pair{Cert: certPEM, Key: keyPEM}, cert: cert, key: key}, nil
}

// Issue makes a key and signs its certificate.
func (a *Authority) Issue(r Request) (Pair, error) {
	template := template(pkix.Name{CommonName: r.User, Organization: r.Groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(r.Hosts) > 0 {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		addHosts(template, r.Hosts)
	}
	key, keyPEM, err := newKey()
	if err != nil {
		return Pair{}, fmt.Errorf("certificate for %s: %w", r.User, err)
	}
	_, certPEM, err := sign(template, a.cert, key, a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("certificate for %s: %w", r.User, err)
	}
	return Pair{Cert: certPEM, Key: keyPEM}, nil
}

// NewKey makes a private key without a certificate, as tokens are signed with.
func NewKey() ([]byte, error) {
	_, keyPEM, err := newKey()
	return keyPEM, err
}

func template(subject pkix.Name) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject:   subject,
		NotBefore: now.Add(-backdate),
		NotAfter:  now.Add(lifetime),
		KeyUsage:  x509.KeyUsageDigitalSignature,
	}
}

func addHosts(template *x509.Certificate, hosts []string) {
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func sign(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (*x509.Certificate, []byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
