package archtest

// The matchers of a rule beside plain patterns. A plain pattern names packages of this repository
// ("libs/errs", "services/*/app", "libs/..." for a tree) or, with a dot in its first element, an
// outside module and everything in it ("github.com/jackc/pgx").
const (
	anyStd   = "std"      // the whole standard library
	pureStd  = "std-pure" // the standard library without I/O, processes, databases and randomness
	ownPure  = "own-pure" // pure packages of the same service: outside internal and app
	ownTree  = "own-tree" // packages of the same adapter
	outside  = "outside"  // every module that is not of this repository
	anything = "anything" // except that a service never imports another one
)

// Rule says what the non-test files of packages may import. The first rule whose pattern fits a
// package holds for it; a package without a rule is an error.
type Rule struct {
	Packages []string
	May      []string
	// Pure packages read no clock either.
	Pure bool
	Why  string
}

// kubernetesTypes are modules of plain types and codecs; none of them talks to a cluster.
var kubernetesTypes = []string{
	"k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver/pkg/apis", "k8s.io/utils", "sigs.k8s.io/yaml",
}

// vocabulary is what pure packages share.
var vocabulary = []string{
	pureStd, "libs/errs", "libs/events", "libs/joining", "libs/digest", "libs/keys", "libs/protocol", "libs/catalog",
	"libs/catalog/display", "libs/source", "libs/installplan", "libs/installplan/terms", "libs/installplan/window",
	"libs/bundle", "libs/render", "libs/operatorgroup", "libs/removedapi", "libs/previewapi", "libs/kubeconfig",
	"libs/configseal", "libs/unknown",
	"github.com/google/uuid", "github.com/blang/semver/v4",
}

func with(list []string, more ...string) []string {
	return append(append([]string{}, list...), more...)
}

// executorStages are what a reconcile of the executor consists of.
func executorStages() []string {
	return under("services/installer/executor/", "clusterconfig", "condition", "deferred", "drift", "group",
		"lifecycle", "mirror", "plan", "report", "rerender", "serving", "uninstall")
}

// executorBase is what the stages of the executor stand on.
func executorBase() []string {
	return under("services/installer/executor/", "failure", "hubclient", "internal/...", "kube", "objects", "overlay",
		"scope", "steplog", "watch")
}

func under(root string, names ...string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = root + name
	}
	return out
}

// Rules is the import table, from the particular to the general.
func Rules() []Rule { //nolint:funlen // one table
	return []Rule{
		{Packages: []string{"libs/errs"}, May: []string{pureStd}, Pure: true, Why: "everything imports it"},
		{
			Packages: []string{"libs/internal/compactjson"}, May: []string{pureStd}, Pure: true,
			Why: "stored events are read by it",
		},
		{
			Packages: []string{"libs/internal/jsontree"}, May: []string{pureStd}, Pure: true,
			Why: "stored digests depend on it",
		},
		{
			Packages: []string{"libs/keys"}, May: []string{pureStd, "libs/errs"}, Pure: true,
			Why: "signatures that are stored in clusters depend on it",
		},
		{
			Packages: []string{"libs/digest"}, May: []string{pureStd, "libs/internal/jsontree"}, Pure: true,
			Why: "stored digests depend on it",
		},
		{Packages: []string{"libs/events"}, May: []string{
			pureStd, "libs/internal/compactjson",
			"github.com/google/uuid",
		}, Pure: true, Why: "stored events depend on it"},
		{Packages: []string{"libs/protocol"}, May: []string{
			pureStd, "libs/errs", "libs/events", "libs/digest", "libs/keys",
			"github.com/google/uuid",
		}, Pure: true, Why: "hub and executor share it"},
		{
			Packages: []string{"libs/catalog/cel"}, May: []string{
				pureStd, "libs/errs", "github.com/blang/semver/v4",
				"github.com/google/cel-go",
			}, Pure: true,
			Why: "rules of constraints, by the loader for authors and by the resolver; the one place that knows the " +
				"language",
		},
		{
			Packages: []string{"libs/catalog/catalogtest", "libs/catalog/catalogtest/installset"},
			May:      []string{anything}, Why: "used by tests only",
		},
		{
			Packages: []string{"libs/catalog", "libs/catalog/internal/..."},
			May: with(vocabulary, "libs/catalog/internal/...", "libs/catalog/cel", "libs/internal/jsontree",
				"go.yaml.in/yaml/v3", "k8s.io/apimachinery/pkg/util/yaml", "github.com/klauspost/compress"), Pure: true,
			Why: "the model of catalogs, and readers of their documents. What OLM reads by a library of Kubernetes " +
				"is read by it, too",
		},
		{
			Packages: []string{"libs/catalog/validate"}, May: with(vocabulary, "libs/catalog/internal/..."), Pure: true,
			Why: "the rules of catalogs",
		},
		{
			Packages: []string{"libs/catalog/load"}, May: with(vocabulary, "libs/catalog/internal/...",
				"libs/catalog/validate", "libs/internal/jsontree",
				"github.com/go-git/go-git/v5/plumbing/format/gitignore"),
			Pure: true, Why: "files come in as an io/fs.FS",
		},
		{
			Packages: []string{"libs/allowance"}, May: with(vocabulary, kubernetesTypes...), Pure: true,
			Why: "what needs an administrator's word; executor, hub and the checks for authors mean the same",
		},
		{
			Packages: []string{"libs/catalog/fbc", "libs/catalog/lint"},
			May: with(vocabulary, "libs/catalog/...", "libs/allowance", "go.yaml.in/yaml/v3", "sigs.k8s.io/yaml",
				"k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver"), Pure: true,
			Why: "tools for authors: documents in, documents out",
		},
		{
			Packages: []string{"libs/catalog/display"}, May: with(vocabulary, "libs/catalog"), Pure: true,
			Why: "what people see of an operator; indexer and gateway mean the same",
		},
		{Packages: []string{"libs/catalog/compare"}, May: with(with(vocabulary, kubernetesTypes...),
			"libs/catalog/..."), Pure: true, Why: "what differs between two bundles, without I/O"},
		{
			Packages: []string{"libs/fleet/placement"},
			May:      []string{pureStd, "libs/events", "k8s.io/apimachinery/pkg/labels"}, Pure: true,
			Why: "which clusters are chosen, and in which wave: selectors mean what they mean to Kubernetes",
		},
		{
			Packages: []string{"libs/fleet/override"},
			May:      []string{pureStd, "libs/events", "libs/fleet/placement", "k8s.io/apimachinery/pkg/labels"},
			Pure:     true,
			Why:      "what clusters get; the gateway refuses what the resolver could not decide, and shows what it decided",
		},
		{
			Packages: []string{"libs/fleet/rolloutstore"},
			May: []string{
				pureStd, "context", "libs/errs", "libs/events", "libs/eventlog", "libs/pg", "libs/fleet/rollout",
				"github.com/jackc/pgx/v5",
			},
			Why: "rollouts in tables, alike in the services that keep them",
		},
		{
			Packages: []string{"libs/fleet/gate"}, Pure: true,
			May: []string{
				pureStd, "libs/errs", "libs/events", "libs/reach", "libs/catalog/cel", "github.com/google/cel-go",
			},
			Why: "what gates may ask; the gateway refuses what the resolver could not evaluate",
		},
		{
			Packages: []string{"libs/outbound"}, May: []string{anyStd, "libs/errs", "libs/reach"},
			Why: "requests to addresses that tenants name",
		},
		{
			Packages: []string{"libs/fleet/rollout"}, Pure: true,
			May: []string{
				pureStd, "libs/errs", "libs/events", "libs/fleet/budget", "libs/fleet/override",
				"libs/installplan/window", "github.com/blang/semver/v4",
			},
			Why: "rollouts are decided in one place; their windows are those of plans",
		},
		{
			Packages: []string{"libs/fleet/..."}, May: []string{pureStd, "libs/errs", "libs/events"}, Pure: true,
			Why: "rollouts are decided in one place, by whoever asks and whoever carries out (ADR 0071)",
		},
		{Packages: []string{"libs/operatorgroup"}, May: []string{
			pureStd, "libs/errs", "libs/events", "libs/bundle",
			"libs/render",
		}, Pure: true, Why: "rules of operator groups; executor and resolver mean the same"},
		{
			Packages: []string{"libs/removedapi"}, May: []string{pureStd}, Pure: true,
			Why: "a table about Kubernetes; executor and gateway mean the same",
		},
		{
			Packages: []string{"libs/reach"}, May: []string{pureStd, "libs/errs"}, Pure: true,
			Why: "who reaches an address: of catalogs' content, of clusters and of who signs people in; it calls nobody",
		},
		{
			Packages: []string{"libs/kubeconfig"}, May: []string{
				pureStd, "libs/errs", "k8s.io/client-go/tools/clientcmd/api/v1", "sigs.k8s.io/json", "sigs.k8s.io/yaml",
			}, Pure: true,
			Why: "what a kubeconfig may say; gateway, installer and sources mean the same. The types of clientcmd are " +
				"plain, its loader is not",
		},
		{
			Packages: []string{"libs/configseal"}, May: []string{pureStd, "libs/errs"}, Pure: true,
			Why: "hub and executor share it; nonces are made of what is sealed, nothing is drawn",
		},
		{
			Packages: []string{"libs/doccommand"}, May: []string{pureStd}, Pure: true,
			Why: "commands in documents, for the tests of the command line and of the whole",
		},
		{
			Packages: []string{"libs/spelling"}, May: []string{pureStd}, Pure: true,
			Why: "which name is meant by a misspelt one; gateway and command mean the same",
		},
		{
			Packages: []string{"libs/rules"}, May: []string{pureStd}, Pure: true,
			Why: "what rules say; gateway and command mean the same",
		},
		{Packages: []string{"libs/rules/cmd/..."}, May: []string{anyStd, "libs/rules"}, Why: "generators"},
		{Packages: []string{"libs/previewapi"}, May: []string{
			pureStd, "libs/errs", "libs/events",
			"github.com/google/uuid",
		}, Pure: true, Why: "gateway and resolver speak of previews in it"},
		{
			Packages: []string{"libs/content"}, May: with(vocabulary, "github.com/klauspost/compress"), Pure: true,
			Why: "bytes in, packs out",
		},
		{
			Packages: []string{"libs/source"}, May: with(vocabulary, "libs/source"), Pure: true,
			Why: "words and rules of sources; gateway and CLI check with them",
		},
		{Packages: []string{"libs/source/internal/sourcetest"}, May: []string{anything}, Why: "used by tests only"},
		{
			Packages: []string{"libs/source/..."}, May: []string{
				anyStd, "libs/errs", "libs/digest", "libs/registryapi",
				"libs/bundle", "libs/catalog/...", "libs/catalog", "libs/kubeconfig", "libs/reach", "libs/source",
				"libs/source/...",
				outside,
			},
			Why: "where catalogs come from: file systems, registries, repositories, servers",
		},
		{Packages: []string{"libs/registryapi"}, May: []string{
			anyStd, "libs/errs", "google.golang.org/grpc",
			"google.golang.org/protobuf",
		}, Why: "the wire form of api.Registry"},
		{
			Packages: []string{"libs/client"}, May: []string{anyStd},
			Why: "who imports the client of the REST API gets nothing else with it (ADR 0066)",
		},
		{
			Packages: []string{"libs/unknown"}, May: []string{pureStd}, Pure: true,
			Why: "what an older release keeps of a newer one's documents",
		},
		{Packages: []string{"libs/installplan"}, May: vocabulary, Pure: true, Why: "rules of the field, without I/O"},
		{
			Packages: []string{"libs/installplan/terms"}, May: vocabulary, Pure: true,
			Why: "what policies make of a plan; resolver and hub mean the same",
		},
		{
			Packages: []string{"libs/installplan/window"}, May: []string{pureStd, "libs/errs", "libs/events"},
			Pure: true, Why: "arithmetic of weekly windows; the time zones are in the program",
		},
		{
			Packages: []string{"libs/bundle", "libs/render"},
			May: with(with(vocabulary, kubernetesTypes...), "libs/internal/jsontree", "go.yaml.in/yaml/v3",
				"github.com/klauspost/compress"), Pure: true, Why: "bytes in, objects out",
		},
		{Packages: []string{"libs/telemetry"}, May: []string{
			anyStd, "libs/errs", "go.opentelemetry.io",
			"github.com/prometheus/client_golang",
		}, Why: "the one place that starts telemetry"},
		{
			Packages: []string{"libs/httpserver"}, May: []string{
				anyStd, "libs/errs", "libs/renewed", "libs/telemetry",
				"github.com/go-chi/chi/v5", "github.com/felixge/httpsnoop", "go.opentelemetry.io",
				"github.com/klauspost/compress", "github.com/rs/cors",
			},
			Why: "the one table from kinds to status",
		},
		{
			Packages: []string{"libs/service"}, May: []string{
				anyStd, "libs/errs", "libs/natsconn", "libs/renewed", "libs/telemetry",
				"go.yaml.in/yaml/v3",
			},
			Why: "every main uses it",
		},
		{
			Packages: []string{"libs/service/platform"}, May: []string{
				anyStd, "libs/service", "libs/bus", "libs/eventlog",
				"libs/httpserver", "libs/migrate", "libs/pg", "libs/servicekeys", "libs/telemetry",
				"github.com/google/uuid",
			},
			Why: "the one start-up of all services",
		},
		{
			Packages: []string{"libs/pg"}, May: []string{
				anyStd, "libs/errs", "libs/telemetry", "github.com/jackc/pgx/v5",
				"github.com/jackc/puddle/v2", "github.com/exaring/otelpgx", "go.opentelemetry.io",
			},
			Why: "Postgres codes are read here alone",
		},
		{
			Packages: []string{"libs/pg/pglocal"}, May: []string{
				anyStd, "libs/errs", "libs/pg", "github.com/jackc/pgx/v5",
			},
			Why: "starts a private server, knows nothing of what is in it",
		},
		{
			Packages: []string{
				"libs/pg/pgtest", "libs/bus/bustest", "libs/projection/projectiontest", "libs/telemetry/telemetrytest",
				"libs/bodies/bodiestest",
				"libs/tunneltest", "libs/certtest",
			},
			May: []string{anything}, Why: "used by tests only",
		},
		{Packages: []string{"libs/migrate/..."}, May: []string{
			anyStd, "migrations", "libs/errs", "libs/events",
			"libs/digest", "libs/migrate", "libs/pg/...", "github.com/golang-migrate/migrate/v4",
			"github.com/jackc/pgx/v5",
		}, Why: "the schema's only door"},
		{
			Packages: []string{"libs/keys/seal"}, May: []string{pureStd, "libs/errs", "libs/keys", "filippo.io/age"},
			Why: "gateway, installer and catalog-indexer agree on it",
		},
		{
			Packages: []string{"libs/bodies"},
			May:      []string{anyStd, "libs/errs", "libs/digest", "libs/keys", "libs/pg", "github.com/jackc/pgx/v5"},
			Why:      "all four services open bodies; the gateway seals them",
		},
		{
			Packages: []string{"libs/keys/sshagent"},
			May:      []string{anyStd, "libs/errs", "libs/keys", "golang.org/x/crypto/ssh"},
			Why:      "keys that another process signs with",
		},
		{
			Packages: []string{"libs/keys/ageplugin"},
			May:      []string{anyStd, "libs/errs", "libs/keys/seal", "filippo.io/age"},
			Why:      "keys that another program decrypts with",
		},
		{
			Packages: []string{"libs/keys/reseal"}, May: []string{
				anyStd, "libs/errs", "libs/keys/seal", "libs/pg", "github.com/jackc/pgx/v5",
			},
			Why: "installer and catalog-indexer share it",
		},
		{Packages: []string{"libs/eventlog"}, May: []string{
			anyStd, "libs/errs", "libs/events", "libs/digest",
			"libs/internal/compactjson", "libs/pg", "libs/telemetry", "github.com/google/uuid",
			"github.com/jackc/pgx/v5", "go.opentelemetry.io",
		}, Why: "the record"},
		{
			Packages: []string{"libs/natsauth"}, May: []string{pureStd, "libs/protocol"}, Pure: true,
			Why: "who may say and hear what on NATS; servers, users, documents and tests come from it",
		},
		{
			Packages: []string{"libs/natsauth/cmd/..."}, May: []string{anyStd, "libs/natsauth"}, Why: "generators",
		},
		{
			Packages: []string{"libs/renewed"}, May: []string{anyStd},
			Why: "settings that are read again; agents and services mean the same",
		},
		{
			Packages: []string{"libs/natsconn"}, May: []string{
				anyStd, "libs/errs", "libs/renewed", "github.com/nats-io",
			},
			Why: "the one way to connect to NATS; apart from the bus, since agents connect and must not reach Postgres",
		},
		{
			Packages: []string{"libs/joining"}, May: []string{pureStd, "libs/errs", "libs/events"}, Pure: true,
			Why: "gateway and installer decide who becomes an agent",
		},
		{
			Packages: []string{"libs/natsjwt"}, May: []string{
				anyStd, "libs/errs", "libs/natsauth", "libs/natsconn", "github.com/nats-io",
			},
			Why: "who is trusted by a server in operator mode; keys come from it, the installer and tests",
		},
		{
			Packages: []string{"libs/rpc"}, May: []string{
				anyStd, "libs/errs", "libs/natsauth", "libs/telemetry", "github.com/nats-io", "go.opentelemetry.io",
			},
			Why: "questions over NATS; apart from the bus, since executors answer and must not reach Postgres",
		},
		{
			Packages: []string{"libs/agentconfig"},
			May:      []string{pureStd, "libs/errs", "libs/keys", "libs/configseal", "github.com/google/uuid"},
			Pure:     true, Why: "what the hub tells an agent, and the agent reads",
		},
		{
			Packages: []string{"libs/servicekeys"}, May: []string{
				anyStd, "libs/errs", "libs/keys", "libs/pg", "github.com/jackc/pgx/v5",
			},
			Why: "by which keys services believe each other; the database says whose they are",
		},
		{
			Packages: []string{"libs/bus/natslocal"}, May: []string{anyStd, "github.com/nats-io"},
			Why: "an embedded server, for development and tests; a module of its own, which libs requires for its tests",
		},
		{
			Packages: []string{"libs/bus"}, May: []string{
				anyStd, "libs/rpc", "libs/errs", "libs/events", "libs/digest",
				"libs/eventlog", "libs/pg", "libs/protocol", "libs/natsauth", "libs/natsconn", "libs/telemetry",
				"github.com/google/uuid", "github.com/jackc/pgx/v5", "github.com/nats-io", "go.opentelemetry.io",
			},
			Why: "the one place that speaks JetStream's management",
		},
		{
			Packages: []string{"libs/projection"}, May: []string{
				anyStd, "libs/errs", "libs/events", "libs/eventlog",
				"libs/pg", "libs/bus", "libs/telemetry", "github.com/jackc/pgx/v5", "go.opentelemetry.io",
			},
			Why: "read models",
		},
		{
			Packages: []string{"libs/events/cmd/..."}, May: []string{anyStd, "libs/events", "go.yaml.in/yaml/v3"},
			Why: "generators",
		},
		{Packages: []string{"libs/archtest"}, May: []string{anyStd}, Why: "looks, and is looked at by nobody"},
		{Packages: []string{"migrations"}, May: []string{anyStd}, Why: "embedded SQL only"},

		{
			Packages: []string{"services/resolver/offer"}, May: with(vocabulary, "libs/catalog/cel"), Pure: true,
			Why: "what catalogs offer, made ready; it knows nothing of a resolution",
		},
		{
			Packages: []string{"services/resolver/resolution"},
			May:      with(vocabulary, "services/resolver/offer", "services/resolver/sat"), Pure: true,
			Why: "what goes into a resolution and what comes out of it",
		},
		{
			Packages: []string{"services/resolver/resolve/graph"},
			May:      with(vocabulary, "services/resolver/offer", "services/resolver/resolution"), Pure: true,
			Why: "what can be chosen; it knows nothing of solving",
		},
		{
			Packages: []string{"services/resolver/resolve/search"},
			May: with(vocabulary, "services/resolver/sat", "services/resolver/resolution",
				"services/resolver/resolve/graph"), Pure: true,
			Why: "solutions and reasons of failures, without sentences",
		},
		{
			Packages: []string{"services/resolver/resolve/explain", "services/resolver/resolve/plan"},
			May: with(vocabulary, "services/resolver/offer", "services/resolver/resolution",
				"services/resolver/resolve/graph", "services/resolver/resolve/search"), Pure: true,
			Why: "what comes of a search: sentences, or plans; neither knows the other",
		},
		{
			Packages: []string{"services/*"}, May: []string{anyStd, "libs/service", "libs/telemetry", "services/*/app"},
			Why: "main starts the app",
		},
		{
			Packages: []string{"services/installer/chandler-agent"},
			May:      []string{anyStd, "libs/service", "libs/telemetry", "services/installer/agent"},
			Why:      "main starts the agent",
		},
		{
			Packages: []string{"services/installer/agent"},
			May: []string{
				anyStd, "libs/...", "services/installer/executor", "services/installer/executor/hubclient",
				"services/installer/joiner", outside,
			},
			Why: "the wiring of an agent: Kubernetes and NATS, never Postgres (see Barriers)",
		},
		{Packages: []string{"services/*/app"}, May: []string{anything}, Why: "the wiring knows all of its own service"},
		{Packages: []string{"services/*/cmd/..."}, May: []string{anything}, Why: "generators of the service"},
		{Packages: []string{"services/gateway/oidctest"}, May: []string{anything}, Why: "used by tests only"},
		{
			Packages: executorStages(), May: with(executorBase(), anyStd, "libs/...", "services/installer/*", outside),
			Why: "a stage of the executor: stages never import each other, they pass a Scope on",
		},
		{
			Packages: []string{"services/installer/executor/overlay"},
			May:      with(with(executorBase(), kubernetesTypes...), pureStd, "libs/...", "services/installer/*"),
			Pure:     true, Why: "what the live cluster adds to rendered objects, as values",
		},
		{
			Packages: []string{"services/installer/executor/..."}, May: []string{anything},
			Why: "the agent: Kubernetes and NATS, never Postgres (see Barriers)",
		},
		{
			Packages: []string{"services/installer/csv"}, May: with(with(vocabulary, kubernetesTypes...), ownPure,
				"github.com/fluxcd/cli-utils/pkg/kstatus/status"), Pure: true,
			Why: "phases and health; kstatus is the field's word for the state of an object",
		},
		{
			Packages: []string{"services/installer/placement"}, May: []string{pureStd}, Pure: true,
			Why: "which replica runs the executor of which cluster, from names and weights alone",
		},
		{
			Packages: []string{"services/installer/permissions"},
			May:      with(with(vocabulary, kubernetesTypes...), "k8s.io/component-helpers/auth/rbac/validation"),
			Pure:     true, Why: "rules of RBAC as the API server covers them",
		},
		{
			Packages: []string{"services/installer/crd"}, May: with(with(vocabulary, kubernetesTypes...),
				"libs/catalog/compare", "k8s.io/apiextensions-apiserver", "k8s.io/apiserver/pkg/apis/cel"), Pure: true,
			Why: "verdicts on CRDs; objects are validated by the API server's own code",
		},
		{
			Packages: []string{"services/gateway/internal/api"},
			May:      []string{anyStd, "libs/...", ownPure, "services/gateway/internal/...", outside},
			Why:      "the REST interface stands above reads, intents and clients",
		},
		{
			Packages: []string{"services/gateway/internal/intent/..."},
			May: []string{
				anyStd, "libs/...", ownPure, ownTree, "services/gateway/internal/store",
				"services/gateway/internal/resolverclient", "services/gateway/internal/installerclient", outside,
			},
			Why: "intents store bodies and ask others before they decide; they do not know read models",
		},
		{
			Packages: []string{"services/installer/internal/executorhost"},
			May:      []string{anyStd, "libs/...", ownPure, ownTree, "services/installer/executor/access", outside},
			Why:      "it keeps the tokens that executors use",
		},
		{
			Packages: []string{"services/installer/joiner"},
			May: []string{
				anyStd, "libs/agentconfig", "libs/errs", "libs/keys", "libs/keys/seal", "libs/natsauth",
				"libs/natsconn", "libs/natsjwt", "libs/protocol", "libs/renewed", "libs/rpc", "filippo.io/age",
				"github.com/google/uuid", "github.com/nats-io",
			},
			Why: "it runs in clusters, and must not reach PostgreSQL",
		},
		{
			Packages: []string{"services/*/internal/..."}, May: []string{anyStd, "libs/...", ownPure, ownTree, outside},
			Why: "adapters do not know each other",
		},
		{
			Packages: []string{"services/gateway/sparse"}, May: with(vocabulary, ownPure, "libs/spelling"), Pure: true,
			Why: "which fields of an answer are kept, with those that are near a wrong name",
		},
		{
			Packages: []string{"services/gateway/webhook"}, May: with(vocabulary, ownPure, "libs/reach"), Pure: true,
			Why: "which addresses can be sent to",
		},
		{
			Packages: []string{"services/gateway/planreview"},
			May: with(with(vocabulary, kubernetesTypes...), ownPure, "libs/catalog/compare",
				"k8s.io/pod-security-admission", "github.com/rogpeppe/go-internal/diff"), Pure: true,
			Why: "what an approver sees; Kubernetes' own rules judge pods",
		},
		{
			Packages: []string{"services/*/..."}, May: with(with(vocabulary, kubernetesTypes...), ownPure,
				"libs/source", "libs/fleet/budget", "libs/fleet/placement", "libs/fleet/rollout", "libs/fleet/gate",
				"libs/fleet/override",
				"libs/installplan/window",
				"libs/catalog/compare", "go.yaml.in/yaml/v3", "github.com/klauspost/compress"), Pure: true,
			Why: "cores of a service: rules without I/O",
		},

		{Packages: []string{"cmd/chandler/..."}, May: []string{anything}, Why: "runs everything in one process"},
		{
			Packages: []string{"examples/port", "examples/port/..."},
			May:      []string{anyStd, "libs/client", "examples/port/..."},
			Why:      "an example uses what others can import",
		},
		{Packages: []string{"test/..."}, May: []string{anything}, Why: "tests and what they need"},
	}
}

// Barrier is a package that must not be reached from another, by any path.
type Barrier struct {
	From   string   // pattern
	But    []string // of From, those that it does not hold for
	Never  []string
	Reason string
	// Through are outside packages whose own import is excused.
	Through []string
}
