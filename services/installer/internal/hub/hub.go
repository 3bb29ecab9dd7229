package hub

import (
	"crypto"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/configseal"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/projection"
)

// Consumer is the name of the hub's checkpoint.
const Consumer = "installer.hub"

// Dirty is the table of dirty scopes.
const Dirty = "installer.dirty"

// GrantTTL is how long a grant lets a plan begin. It is signed again when half of it is over, so that an
// executor which the hub reaches always has at least half of it left, and one that was cut off by the hub
// on purpose stops beginning plans within this time.
const GrantTTL = 30 * time.Minute

// Config is what a hub needs; every field but Log and Now is required.
type Config struct {
	Pool     *pg.Pool
	EventLog *eventlog.Log
	Bus      *bus.Bus
	Configs  configseal.Root // configurations are sealed by it to the executors of their cluster
	Bodies   bodies.Keys     // open what the gateway keeps beside the log
	Key      crypto.Signer   // the active one: signs grants and messages
	// AgentAway is for how long an agent may go on without hearing from the hub; protocol.GoAheadValid at least.
	AgentAway time.Duration
	Now       func() time.Time // time.Now where nil
	Log       *slog.Logger     // slog.Default where nil
	// Changed is called when clusters may have changed.
	Changed func()
}

// Hub keeps the messages of PLANS up to date with the log.
type Hub struct {
	c        Config
	lanes    *bus.Lanes
	handlers bus.Handlers
	consumer *bus.Consumer
	content  *contents
	keyID    string // of the active key
	switches switches
	// stops is set by the fold of a stop, stopped woken once that is committed.
	stops   atomic.Bool
	stopped chan struct{}
	// clusters is set by the fold of an event of a cluster.
	clusters atomic.Bool

	mu          sync.Mutex
	withheldWhy map[string]string // why plans are withheld, so that each reason is reported once
}

// New returns a hub; its parts are run by Consume, Work and Guard.
func New(c Config) *Hub {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Changed == nil {
		c.Changed = func() {}
	}
	lanes := bus.NewLanes(c.Pool, Dirty, c.Log)
	lanes.Follows = Consumer // half-built tables would tell executors that nothing is wanted
	h := &Hub{
		c: c, lanes: lanes, content: newContents(c.Pool, c.Bus, c.Bodies), withheldWhy: map[string]string{},
		keyID: keys.SignerID(c.Key), stopped: make(chan struct{}, 1),
	}
	h.handlers = folder{lanes, c.EventLog, &h.stops, &h.clusters}.handlers()
	h.consumer = &bus.Consumer{
		Name: Consumer, Log: c.EventLog, Pool: c.Pool, Bus: c.Bus, Types: h.handlers.Types(),
		Handle: h.handlers.Handle, Logger: c.Log, Committed: func(events.Position) {
			if h.stops.Swap(false) {
				signal(h.stopped)
			}
			h.lanes.Wake()
			if h.clusters.Swap(false) {
				c.Changed()
			}
		},
	}
	return h
}

// signal wakes whoever waits for c, once.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Consumer is the part that follows the log.
func (h *Hub) Consumer() *bus.Consumer { return h.consumer }

// Making is what a rebuild makes of the hub's tables. Those that it does not name are the recorder's and the executors'
// (holds, observations, reports, logs), and what was published.
func Making(h *Hub) projection.Making {
	return projection.Making{
		Consumer: h.consumer, Schema: "installer", Handle: h.handlers.Handle,
		Derived: []string{
			"agents", "approval_policies", "catalogs", "clusters", "csvs", "metadata", "operatorgroups", "plans",
			"removals", "stops", "subscriptions", "totals",
		},
		Marks: []string{"dirty"},
		// What was heard of holders, and until when plans may begin, is of now: an event of long ago changes neither.
		Aside: []string{"holders", "grants"},
	}
}

// Lanes are the dirty scopes.
func (h *Hub) Lanes() *bus.Lanes { return h.lanes }
