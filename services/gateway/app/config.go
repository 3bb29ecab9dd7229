package app

import (
	"io"

	"github.com/chandler-fleet/chandler/libs/service"
)

// DefaultListen is where the API is served unless told otherwise: this machine only.
const DefaultListen = "127.0.0.1:8080"

// Config is the configuration of the gateway.
type Config struct {
	service.Config
	Listen string // address of the API; port 0 takes a free one
	// AdminToken becomes the admin token. Without one a new installation makes its own.
	AdminToken string
	// CredentialsRecipient is the public age key that kubeconfigs are encrypted to.
	CredentialsRecipient string
	// TokenTo is where a token that was made is told, once; os.Stderr when nil. It is no setting.
	TokenTo io.Writer
}

// Settings declares the settings of the service.
func (c *Config) Settings(s *service.Settings) {
	c.Config.Settings(s)
	s.String(&c.Listen, "listen", DefaultListen, "address of the REST interface")
	s.Secret(&c.AdminToken, "admin-token", "bearer token of the administrator; a new installation makes one without it")
	s.String(&c.CredentialsRecipient, "credentials-recipient", "", "public age key (age1…) of the installer, which kubeconfigs are encrypted to")
}
