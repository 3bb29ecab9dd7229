package app

import (
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys/ageplugin"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
	"github.com/chandler-fleet/chandler/libs/service"
)

const (
	// pollers is how many catalogs are read side by side: each decodes on all processors, so that more
	// would only add memory, and a small catalog does not wait for a large one.
	pollers = 2
	// defaultPoll is how often what lies in a file system is polled: names, sizes and times.
	defaultPoll = 30 * time.Second
	// defaultRemotePoll is how often registries, repositories and servers are asked whether there is
	// something new; what must be seen sooner is pushed.
	defaultRemotePoll = 15 * time.Minute
	// maxSecretBytes bounds a decrypted credential: a bundle of certificates has some hundred kilobytes.
	maxSecretBytes = 1 << 20
)

// Config is the configuration of the catalog-indexer.
type Config struct {
	service.Config
	CatalogRoot string         // where all paths of catalogs must lie; "" allows every absolute path
	Cache       string         // where fetched layers and unpacked files lie
	Poll        time.Duration  // how often sources in the file system are compared
	RemotePoll  time.Duration  // how often all others are asked
	Workers     int            // documents decoded in parallel; 0 is one per processor
	Identity    string         // age identities that open credentials of catalog sources, the active one first
	Bodies      bodies.Secrets // the keys of sources
	Mirrors     string         // JSON list of mirrors for all catalogs
	Retention   service.Retention
}

// Settings declares the settings of the service.
func (c *Config) Settings(s *service.Settings) {
	c.Config.Settings(s)
	s.String(&c.CatalogRoot, "catalog-root", "",
		"directory that all catalog directories must lie in; empty allows every absolute path")
	s.String(&c.Cache, "catalog-cache", "",
		"directory for fetched layers and unpacked files; empty is one of its own in the system's for temporary files")
	s.Duration(&c.Poll, "poll", defaultPoll, "how often catalog directories are polled for changes")
	s.Duration(&c.RemotePoll, "remote-poll", defaultRemotePoll,
		"how often other catalog sources are asked for changes, where a catalog says nothing")
	s.Int(&c.Workers, "decode-workers", 0, "documents decoded in parallel; 0 is one per processor")
	c.Retention.Settings(s)
	c.Bodies.Of("catalog-indexer").Declare(s.Secret)
	s.Secret(&c.Identity, "catalog-credentials-identity",
		"age identities (AGE-SECRET-KEY-1…) that open credentials of catalog sources, with commas; what is stored is "+
			"encrypted to the first")
	s.String(&c.Mirrors, "catalog-mirrors", "",
		`mirrors for all catalogs as JSON: [{"source": "quay.test/x", "mirrors": ["local.test/x"], "neverContactSource": true}]`)
}

func (c *Config) defaults() {
	if c.Poll <= 0 {
		c.Poll = defaultPoll
	}
	if c.Cache == "" {
		c.Cache = defaultCache()
	}
	if c.RemotePoll <= 0 {
		c.RemotePoll = defaultRemotePoll
	}
}

// identities parses the identities; none where none is set. Errors never quote them.
func (c *Config) identities() (seal.Identities, error) {
	if strings.TrimSpace(c.Identity) == "" {
		return nil, nil
	}
	list, err := seal.ParseIdentities(c.Identity, ageplugin.Open)
	if err != nil {
		return nil, errs.New(errs.Invalid, "CHANDLER_CATALOG_CREDENTIALS_IDENTITY: %v", err).
			At("catalog-credentials-identity", "")
	}
	return list, nil
}
