package registry

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/chandler-fleet/chandler/libs/errs"
	api "github.com/chandler-fleet/chandler/libs/registryapi"
)

// Bounds on a server.
const (
	// MaxMessageBytes bounds one answer; the largest real bundle has 6.8 MB of manifests, and its CSV again.
	MaxMessageBytes = 64 << 20
	// MaxListedBytes bounds what is read several at a time or of a list: what real bundles have. A larger
	// one is read alone.
	MaxListedBytes = 16 << 20
	// MaxPackageBytes bounds what is said of one package; real ones have some 60 channels.
	MaxPackageBytes = 1 << 20
	// MaxFields bounds the parts of one answer: two bytes of it can make a hundred in memory. The largest
	// real bundle has some 600.
	MaxFields = 100_000
	// MaxName bounds names and ranges of versions, as file systems do their paths.
	MaxName = 4096
	// MaxFacts bounds what is remembered beside manifests, in bytes; 15,000 versions have about 10 MB.
	MaxFacts = 256 << 20
	// MaxPackages bounds the packages; the largest published catalog has 400.
	MaxPackages = 20_000
	// MaxEntries bounds the entries of all channels; the largest published catalog has some 15,000.
	MaxEntries = 500_000
	// MaxBytes bounds all answers together; the largest published catalogs have 600 MB of manifests.
	MaxBytes = 4 << 30
	// DefaultStall is how long one answer, or the next of a stream, may take.
	DefaultStall = 30 * time.Second
	// asking is how many calls run at a time: enough to hide the way to a server far away, and no load.
	asking = 8
)

// Options say which server to read, and how.
type Options struct {
	// Address is host:port.
	Address string
	// Insecure speaks without TLS, as servers inside a cluster do.
	Insecure bool
	// CA holds certificates as PEM, beside those of the system.
	CA []byte
	// Token is sent as a bearer token; it needs TLS.
	Token string
	// Stall bounds the wait for one answer; 0 is DefaultStall.
	Stall time.Duration
	// Dir is where the catalog is written until it is closed; "" is the system's temporary directory.
	Dir string

	limits limits
}

// limits are the constants above, smaller in tests.
type limits struct {
	message, packages, entries int
	bytes                      int64

	listed, pkg, fields int
	facts               int64
}

func (l limits) orDefault() limits {
	if l == (limits{}) {
		l = limits{message: MaxMessageBytes, packages: MaxPackages, entries: MaxEntries, bytes: MaxBytes}
	}
	l.listed = cmp.Or(l.listed, min(MaxListedBytes, l.message))
	l.pkg = cmp.Or(l.pkg, min(MaxPackageBytes, l.message))
	l.fields = cmp.Or(l.fields, MaxFields)
	l.facts = cmp.Or(l.facts, MaxFacts)
	return l
}

// dial makes a client. It contacts nobody yet.
func (o Options) dial() (*reader, error) {
	host, port, err := net.SplitHostPort(o.Address)
	if _, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || host == "" ||
		strings.ContainsAny(host, "/\\@?#") {
		return nil, errs.New(errs.Invalid, "address %q of the catalog server is not host:port", o.Address).At(
			"address", "R-CAT-70")
	}
	secure, err := o.transport()
	if err != nil {
		return nil, err
	}
	r := &reader{stall: o.Stall, limits: o.limits.orDefault(), address: o.Address}
	if r.stall <= 0 {
		r.stall = DefaultStall
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(secure),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(&sparing{fields: r.limits.fields, refused: &r.crowded})),
		grpc.WithDisableServiceConfig(), // it would come from DNS and could repeat calls
	}
	if o.Token != "" {
		options = append(options, grpc.WithPerRPCCredentials(bearer(o.Token)))
	}
	// The scheme is written here, so that an address cannot bring another one.
	r.conn, err = grpc.NewClient("dns:///"+o.Address, options...)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "catalog server %s", o.Address)
	}
	r.api = api.NewRegistryClient(r.conn)
	return r, nil
}

func (o Options) transport() (credentials.TransportCredentials, error) {
	if o.Insecure {
		if o.Token != "" {
			return nil, errs.New(errs.Invalid,
				"a token for catalog server %s would be sent in the clear; use TLS, or leave the token out",
				o.Address).At("insecure", "R-DIS-4")
		}
		return insecure.NewCredentials(), nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(o.CA) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(o.CA) {
			return nil, errs.New(errs.Invalid,
				"the CA certificates for catalog server %s hold no certificate in PEM form", o.Address).At(
				"secrets", "R-DIS-4")
		}
		c.RootCAs = pool
	}
	return credentials.NewTLS(c), nil
}

// bearer is a token for every call.
type bearer string

// GetRequestMetadata is of credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity is of credentials.PerRPCCredentials.
func (b bearer) RequireTransportSecurity() bool { return true }
