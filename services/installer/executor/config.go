package executor

import (
	"crypto/ed25519"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Config is what an executor needs. Tenant to Log are required.
type Config struct {
	Tenant    string
	Cluster   string // name, for people
	ClusterID string // UUID, for subjects
	REST      *rest.Config
	JetStream jetstream.JetStream
	GrantKey  ed25519.PublicKey
	// Holder names the process slot: unique among all that live at a time, and best the same after a
	// restart, since a restarted process then goes on at once instead of waiting for its own lease.
	Holder string
	Now    func() time.Time
	Log    *slog.Logger

	Timing Timing
	// Hook is called at each point between two effects; an error ends Run there and then, as a crash
	// would. It is for tests.
	Hook func(point string) error
}

// Timing are the intervals; zero values stand for the defaults.
type Timing struct {
	Lease   time.Duration // how long a holder that is not heard of stays the holder; default 15 s
	Renew   time.Duration // how often the holder is heard of; default 3 s
	Resend  time.Duration // how often reports are written again; default 15 s
	Reread  time.Duration // how often PLANS are read again; default 30 s
	Resync  time.Duration // how often a scope is looked at without a hint; default 60 s
	Grace   time.Duration // how long a transient failure lasts before it is reported; default 5 s
	Backoff time.Duration // first wait after a transient failure, doubled up to a minute; default 1 s
}

func (t Timing) withDefaults() Timing {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&t.Lease, 15*time.Second)
	def(&t.Renew, 3*time.Second)
	def(&t.Resend, 15*time.Second)
	def(&t.Reread, 30*time.Second)
	def(&t.Resync, time.Minute)
	def(&t.Grace, 5*time.Second)
	def(&t.Backoff, time.Second)
	return t
}

func (c Config) check() error {
	missing := map[string]bool{
		"Tenant": c.Tenant == "", "Cluster": c.Cluster == "", "ClusterID": c.ClusterID == "", "Holder": c.Holder == "",
		"REST": c.REST == nil, "JetStream": c.JetStream == nil, "GrantKey": len(c.GrantKey) != ed25519.PublicKeySize,
		"Now": c.Now == nil, "Log": c.Log == nil,
	}
	for _, field := range []string{"Tenant", "Cluster", "ClusterID", "REST", "JetStream", "GrantKey", "Holder", "Now", "Log"} {
		if missing[field] {
			return errs.New(errs.Invalid, "executor of cluster %q: %s is missing", c.Cluster, field)
		}
	}
	return nil
}
