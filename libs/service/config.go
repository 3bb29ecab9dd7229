package service

import (
	"time"

	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/renewed"
)

// DefaultDrain is how long a stopping service may finish what it began; Kubernetes kills after 30 s.
const DefaultDrain = 20 * time.Second

// Config is what every service needs. A service embeds it and adds its own settings.
type Config struct {
	DatabaseURL string // Postgres, with the service's own role
	NATS        natsconn.Settings
	OpsListen   string // address of /healthz, /readyz and /metrics; port 0 takes a free one
	// Both in PEM: /healthz, /readyz and /metrics are served with TLS where they are given.
	OpsCertificate, OpsKey renewed.Setting
	OpsToken               string        // what /metrics and the reasons of /readyz ask for; "" for none
	LogLevel               string        // debug, info, warn or error
	LogFormat              string        // json or text
	OTLPEndpoint           string        // URL of an OpenTelemetry collector; "" sends no traces
	Drain                  time.Duration // bound of the ordered stop
}

// Settings declares the settings of Config in s.
func (c *Config) Settings(s *Settings) {
	s.Secret(&c.DatabaseURL, "database-url", "URL of Postgres with the role of this service")
	c.WithoutDatabase(s)
}

// WithoutDatabase declares the settings of Config for a program that has no Postgres.
func (c *Config) WithoutDatabase(s *Settings) {
	NATSSettings(&c.NATS, s)
	s.String(&c.OpsListen, "ops-listen", "127.0.0.1:0", "address of health, readiness and metrics")
	s.Renewed(&c.OpsCertificate, "ops-certificate", "certificate of that address, in PEM; without one it has no TLS")
	s.Renewed(&c.OpsKey, "ops-key", "its key, in PEM")
	s.Secret(&c.OpsToken, "ops-token", "bearer token for metrics and the reasons of readiness; open without one")
	s.String(&c.LogLevel, "log-level", "info", "debug, info, warn or error")
	s.String(&c.LogFormat, "log-format", "json", "json or text")
	s.String(&c.OTLPEndpoint, "otlp-endpoint", "", "URL of an OpenTelemetry collector")
	s.Duration(&c.Drain, "drain", DefaultDrain, "bound of the ordered stop")
}

// NATSSettings declares the settings of a connection to NATS.
func NATSSettings(c *natsconn.Settings, s *Settings) {
	s.String(&c.URL, "nats-url", "nats://127.0.0.1:4222", "URLs of NATS, separated by commas")
	s.Secret(&c.Credentials, "nats-credentials", "who this is to NATS: content of a creds file")
	s.Secret(&c.NKeySeed, "nats-nkey-seed", "who this is to NATS: seed of an NKey")
	s.Secret(&c.Token, "nats-token", "who this is to NATS: token")
	s.String(&c.User, "nats-user", "", "who this is to NATS: user, with nats-password")
	s.Secret(&c.Password, "nats-password", "password of nats-user")
	s.Renewed(&c.CA, "nats-ca", "authorities that may sign the certificate of NATS, in PEM, beside the system's")
	s.Renewed(&c.ClientCertificate, "nats-client-certificate", "certificate that is shown to NATS, in PEM")
	s.Renewed(&c.ClientKey, "nats-client-key", "its key, in PEM")
	s.Bool(&c.AllowOpen, "nats-allow-open", false, "take a NATS elsewhere than on loopback that lets in everybody")
	s.Bool(&c.AllowPlaintext, "nats-allow-plaintext", false, "speak with NATS elsewhere than on loopback without TLS")
}

// Base returns the part of a service's configuration that every service has.
func (c *Config) Base() *Config { return c }

// Configurable is a service's configuration: a struct that embeds Config and may add settings.
type Configurable interface {
	Settings(s *Settings)
	Base() *Config
}
