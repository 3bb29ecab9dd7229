package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
)

// Certificates are files in PEM, as a kubeconfig names them. The zero value trusts the system's authorities and shows
// nothing.
type Certificates struct {
	// Authority may sign the certificate of the gateway, in the place of the system's.
	Authority string
	// Client is the certificate of a machine, which lets it in where no token is sent, and Key its key. They are read
	// again for each connection, so that renewed ones need no restart.
	Client, Key string
}

// transport shows and trusts the certificates; nil is that of all programs.
func (c Certificates) transport() (http.RoundTripper, error) {
	if c == (Certificates{}) {
		return nil, nil //nolint:nilnil // http.Client knows it as the default
	}
	if (c.Client == "") != (c.Key == "") {
		return nil, errors.New("a client certificate and its key go together")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.Authority != "" {
		raw, err := os.ReadFile(c.Authority)
		if err != nil {
			return nil, fmt.Errorf("read the certificate authority: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(raw) {
			return nil, fmt.Errorf("%s holds no certificate in PEM", c.Authority)
		}
	}
	if c.Client != "" {
		if _, err := tls.LoadX509KeyPair(c.Client, c.Key); err != nil {
			return nil, fmt.Errorf("read the client certificate: %w", err)
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(c.Client, c.Key)
			return &pair, err
		}
	}
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // nobody replaces it
	t.TLSClientConfig = config
	return t, nil
}
