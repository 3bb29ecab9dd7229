package archtest

// misnamed holds a file of tests whose name does not end in _test (verify_test_dsa.go), and so imports testing. It
// reads timestamps for Sigstore's library.
const misnamed = "github.com/digitorus/pkcs7"

// Barriers hold for the whole chain of imports.
func Barriers() []Barrier {
	return []Barrier{
		{From: "services/installer/executor/...", Never: []string{
			"github.com/jackc/pgx/v5", "libs/eventlog",
			"libs/pg",
		}, Reason: "an agent cannot reach Postgres (D8)"},
		{From: "services/installer/agent", Never: []string{
			"github.com/jackc/pgx/v5", "libs/eventlog", "libs/pg", "services/installer/internal/...",
		}, Reason: "an agent cannot reach Postgres (D8)"},
		{From: "services/installer/chandler-agent", Never: []string{
			"github.com/jackc/pgx/v5", "libs/eventlog", "libs/pg",
		}, Reason: "an agent cannot reach Postgres (D8)"},
		{
			From: "services/...",
			// What tests of several packages share. Whoever imports it reaches what they must not.
			But: []string{
				"services/gateway/internal/intent/intenttest", "services/gateway/internal/view/viewtest",
				"services/gateway/oidctest",
			},
			Never: []string{
				"github.com/nats-io/nats-server/v2", "testing", "libs/pg/pglocal",
				"libs/pg/pgtest", "libs/bodies/bodiestest",
				"libs/bus/bustest", "libs/bus/natslocal", "libs/projection/projectiontest",
				"libs/tunneltest", "libs/certtest", "services/gateway/oidctest",
			},
			Reason:  "what ships holds no servers and no tests",
			Through: []string{misnamed},
		},
		{
			From: "cmd/chandler/cli/kinds", Never: []string{
				"cmd/chandler/cli/admin", "cmd/chandler/cli/catalogs",
				"cmd/chandler/cli/clusters", "cmd/chandler/cli/explain", "cmd/chandler/cli/objects",
				"cmd/chandler/cli/operators", "cmd/chandler/cli/plans",
			},
			Reason: "what commands share does not know the groups of commands",
		},
		{
			From: "cmd/chandler", Never: []string{
				"testing", "libs/pg/pgtest", "libs/bus/bustest", "services/gateway/oidctest",
			},
			Reason:  "what ships holds no tests",
			Through: []string{misnamed},
		},
	}
}
