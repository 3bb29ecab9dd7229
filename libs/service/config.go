package service

import "time"

// DefaultDrain is how long a stopping service may finish what it began; Kubernetes kills after 30 s.
const DefaultDrain = 20 * time.Second

// Config is what every service needs. A service embeds it and adds its own settings.
type Config struct {
	DatabaseURL  string        // Postgres, with the service's own role
	NATSURL      string        // one or more, separated by commas
	OpsListen    string        // address of /healthz, /readyz and /metrics; port 0 takes a free one
	LogLevel     string        // debug, info, warn or error
	LogFormat    string        // json or text
	OTLPEndpoint string        // URL of an OpenTelemetry collector; "" sends no traces
	Drain        time.Duration // bound of the ordered stop
}

// Settings declares the settings of Config in s.
func (c *Config) Settings(s *Settings) {
	s.Secret(&c.DatabaseURL, "database-url", "URL of Postgres with the role of this service")
	s.String(&c.NATSURL, "nats-url", "nats://127.0.0.1:4222", "URLs of NATS, separated by commas")
	s.String(&c.OpsListen, "ops-listen", "127.0.0.1:0", "address of health, readiness and metrics")
	s.String(&c.LogLevel, "log-level", "info", "debug, info, warn or error")
	s.String(&c.LogFormat, "log-format", "json", "json or text")
	s.String(&c.OTLPEndpoint, "otlp-endpoint", "", "URL of an OpenTelemetry collector")
	s.Duration(&c.Drain, "drain", DefaultDrain, "bound of the ordered stop")
}

// Base returns the part of a service's configuration that every service has.
func (c *Config) Base() *Config { return c }

// Configurable is a service's configuration: a struct that embeds Config and may add settings.
type Configurable interface {
	Settings(s *Settings)
	Base() *Config
}
