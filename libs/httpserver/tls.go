package httpserver

import (
	"crypto/tls"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/renewed"
)

// NewTLS takes the settings NAME-certificate (with those of its authorities where clients need them) and NAME-key, both
// in PEM or neither: then it returns nil. It refuses with an errs.Invalid that names the setting. Certificate and key
// that come from files are read again for each connection; trouble with newer ones is told to trouble, and those before
// stay.
func NewTLS(name string, certificate, key renewed.Setting, trouble func(error)) (*tls.Config, error) {
	switch {
	case !certificate.Given() && !key.Given():
		return nil, nil //nolint:nilnil // no TLS is a choice
	case !key.Given():
		return nil, errs.New(errs.Invalid, "setting %s-certificate is given without %s-key", name, name)
	case !certificate.Given():
		return nil, errs.New(errs.Invalid, "setting %s-key is given without %s-certificate", name, name)
	}
	pair, err := renewed.New(func(texts []string) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair([]byte(texts[0]), []byte(texts[1]))
		return &pair, errs.Wrap(errs.Invalid, err, "settings %s-certificate and %s-key", name, name)
	}, trouble, certificate, key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.Get(), nil },
	}, nil
}
