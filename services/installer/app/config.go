package app

import (
	"crypto/ed25519"
	"encoding/base64"
	"os"
	"strings"

	"filippo.io/age"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/service"
)

// Config is the installer's configuration.
type Config struct {
	service.Config
	Identity string // age identity that opens kubeconfigs
	GrantKey string // seed of the Ed25519 key that signs grants, 32 bytes in base64
	Holder   string // name of this process slot in clusters' leases; "" is host and ops address
}

// Settings declares the settings.
func (c *Config) Settings(s *service.Settings) {
	c.Config.Settings(s)
	s.Secret(&c.Identity, "credentials-identity", "age identity (AGE-SECRET-KEY-1…) that opens stored kubeconfigs")
	s.Secret(&c.GrantKey, "grant-key", "seed of the Ed25519 key that signs grants: 32 bytes in base64")
	s.String(&c.Holder, "holder", "",
		"name of this process in clusters' leases; unique, and best the same after a restart")
}

// keys parses the secrets. Errors never quote them.
func (c *Config) keys() (age.Identity, ed25519.PrivateKey, error) {
	id, err := age.ParseX25519Identity(strings.TrimSpace(c.Identity))
	if err != nil {
		return nil, nil, errs.New(errs.Invalid,
			"CHANDLER_CREDENTIALS_IDENTITY is not an age identity: want AGE-SECRET-KEY-1…").
			At("credentials-identity", "")
	}
	seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(c.GrantKey))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, nil, errs.New(errs.Invalid, "CHANDLER_GRANT_KEY is not %d bytes in base64", ed25519.SeedSize).At(
			"grant-key", "")
	}
	return id, ed25519.NewKeyFromSeed(seed), nil
}

// holder names the process slot. Without a setting it is the host (a pod's name) and the address of the
// ops listener, which no other process has at the same time.
func (c *Config) holder(opsAddr string) (string, error) {
	if c.Holder != "" {
		return c.Holder, nil
	}
	name, err := os.Hostname()
	if err != nil {
		return "", errs.Wrap(errs.Internal, err, "name of this host")
	}
	return name + "/" + opsAddr, nil
}
