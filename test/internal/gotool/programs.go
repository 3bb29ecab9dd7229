package gotool

const modulePrefix = "github.com/chandler-fleet/chandler/"

// CLI is the command line tool.
const CLI = modulePrefix + "cmd/chandler"

// Agent is the executor of one cluster as a program of its own.
const Agent = modulePrefix + "services/installer/chandler-agent"

// SimulatedSpokes plays clusters for a hub.
const SimulatedSpokes = modulePrefix + "test/fleetsim/simspokes"

// Services are what a running Chandler consists of: nats-server as its authors ship it, in the version that the
// workspace pins, and the four services.
var Services = []string{
	"github.com/nats-io/nats-server/v2",
	modulePrefix + "services/catalog-indexer",
	modulePrefix + "services/resolver",
	modulePrefix + "services/installer",
	modulePrefix + "services/gateway",
}
