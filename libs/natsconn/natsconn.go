// Package natsconn connects to NATS: the settings of a connection, and what is asked of a server. It is apart from
// package bus because agents connect, too, and must not reach PostgreSQL (DESIGN D8).
package natsconn

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/renewed"
)

// Settings say where NATS is, who this program is there, and what it asks of the server.
type Settings struct {
	URL string // one or more, separated by commas
	// At most one of Credentials, NKeySeed, Token and User is set; a URL may hold a token or a password instead.
	Credentials string // content of a creds file: a JWT and the seed of its user
	NKeySeed    string
	// JWT says what the server is shown beside the signature of NKeySeed, anew for each connection; nil: the public key
	// is enough.
	JWT      func() (string, error)
	Token    string
	User     string
	Password string
	// PEM: the authorities that are trusted beside the system's, and a certificate of this client with its key. Those
	// that come from files are read again for each connection.
	CA                renewed.Setting
	ClientCertificate renewed.Setting
	ClientKey         renewed.Setting
	// What is refused of a server elsewhere than on loopback, unless waived.
	AllowOpen      bool // a server that lets in everybody
	AllowPlaintext bool // a connection without TLS

	// Trouble is told why newer files of certificates cannot be used; those before stay. nil: nobody is told.
	Trouble func(error)
}

// A server that is gone without closing its connections is noticed by its silence: after Silence at most the client
// looks for another one. The library's own values, two minutes and two pings, take up to six minutes.
const (
	pingInterval = 4 * time.Second
	maxPings     = 2
	Silence      = (maxPings + 2) * pingInterval
)

// Options are what nats.Connect needs beside the URL.
func (s *Settings) Options() ([]nats.Option, error) {
	auth, err := s.authentication()
	if err != nil {
		return nil, err
	}
	secure, err := s.transport()
	silence := []nats.Option{nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(maxPings)}
	return slices.Concat(silence, auth, secure), err
}

func (s *Settings) authentication() ([]nats.Option, error) {
	var ways []string
	var option nats.Option
	if s.Credentials != "" {
		ways, option = append(ways, "nats-credentials"), nats.UserCredentialBytes([]byte(s.Credentials))
	}
	if s.NKeySeed != "" {
		o, err := nkey(s.NKeySeed, s.JWT)
		if err != nil {
			return nil, err
		}
		ways, option = append(ways, "nats-nkey-seed"), o
	}
	if s.Token != "" {
		ways, option = append(ways, "nats-token"), nats.Token(s.Token)
	}
	if s.User != "" {
		ways, option = append(ways, "nats-user"), nats.UserInfo(s.User, s.Password)
	}
	switch {
	case len(ways) > 1:
		return nil, errs.New(errs.Invalid, "settings %s: only one of them can say who this is to NATS",
			strings.Join(ways, ", "))
	case s.User == "" && s.Password != "":
		return nil, errs.New(errs.Invalid, "setting nats-password is given without nats-user")
	case option == nil:
		return nil, nil
	}
	return []nats.Option{option}, nil
}

func (s *Settings) transport() ([]nats.Option, error) {
	var shows nats.TLSCertHandler
	var trusts nats.RootCAsHandler
	if s.CA.Given() {
		pool, err := renewed.New(authorities, s.Trouble, s.CA)
		if err != nil {
			return nil, err
		}
		trusts = func() (*x509.CertPool, error) { return pool.Get(), nil }
	}
	if s.ClientCertificate.Given() || s.ClientKey.Given() {
		pair, err := renewed.New(keyPair, s.Trouble, s.ClientCertificate, s.ClientKey)
		if err != nil {
			return nil, err
		}
		shows = func() (tls.Certificate, error) { return pair.Get(), nil }
	}
	if shows == nil && trusts == nil {
		return nil, nil
	}
	return []nats.Option{nats.ClientTLSConfig(shows, trusts)}, nil
}

func authorities(texts []string) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "read the authorities of the system")
	}
	if !pool.AppendCertsFromPEM([]byte(texts[0])) {
		return nil, errs.New(errs.Invalid, "setting nats-ca: it holds no certificate in PEM")
	}
	return pool, nil
}

func keyPair(texts []string) (tls.Certificate, error) {
	pair, err := tls.X509KeyPair([]byte(texts[0]), []byte(texts[1]))
	return pair, errs.Wrap(errs.Invalid, err, "settings nats-client-certificate and nats-client-key")
}

// Refuse says why a server must not be used: it is elsewhere and lets in everybody, or speaks without TLS.
func (s *Settings) Refuse(c *nats.Conn) error {
	if !c.IsConnected() || loopback(c.ConnectedAddr()) {
		return nil
	}
	if !s.AllowOpen && !c.AuthRequired() {
		return errs.New(errs.Invalid, "NATS at %s lets in everybody: give it users (chandler keys nats), or say "+
			"CHANDLER_NATS_ALLOW_OPEN=true to go on without", c.ConnectedAddr())
	}
	if _, err := c.TLSConnectionState(); err != nil && !s.AllowPlaintext {
		return errs.New(errs.Invalid, "the connection to NATS at %s is not encrypted: give the server a certificate, or say "+
			"CHANDLER_NATS_ALLOW_PLAINTEXT=true to go on without", c.ConnectedAddr())
	}
	return nil
}

// loopback reports whether an address is of this machine. One that cannot be read is not.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}
