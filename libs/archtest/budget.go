package archtest

// Budget bounds what a module may depend on. Raising a number is a decision: say in the change why.
type Budget struct {
	Module string
	// Direct is how many outside modules the non-test code of the module imports itself.
	Direct int
	// Linked is how many packages beyond the standard library its binary holds; 0 for a library.
	Linked int
}

// Budgets are the bounds of every module of the workspace.
func Budgets() []Budget {
	return []Budget{
		{Module: "migrations", Direct: 0},
		// The types of clientcmd, which libs/kubeconfig decodes by, and the strict decoder of Kubernetes are two of
		// them, and NKeys, by which users of NATS are known, another. Which page of another origin may read an answer
		// (CORS) is decided by rs/cors (ADR 0055).
		{Module: "libs", Direct: 34},
		{Module: "libs/bus/natslocal", Direct: 1},
		// A module of its own, so that who imports it gets nothing of Chandler's own dependencies.
		{Module: "libs/client", Direct: 0},
		// Signatures are verified by Sigstore's own library, with its types of keys (ADR 0042); the third is the log of
		// certificates that tests run.
		{Module: "libs/source", Direct: 18},
		{Module: "services/catalog-indexer", Direct: 10, Linked: 900},
		{Module: "services/resolver", Direct: 8, Linked: 445},
		// It unpacks signed images again, and verifies bundles of Sigstore, before it signs a grant (ADR 0034, 0042).
		{Module: "services/installer", Direct: 16, Linked: 1020},
		// It checks the tokens of identity providers (go-oidc, go-jose), renders plans for approvers, and judges their
		// pods by Kubernetes' own rules (ADR 0056). Label selectors are read by Kubernetes' own parser. One is
		// the identity provider that tests run (mockoidc).
		{Module: "services/gateway", Direct: 17, Linked: 560},
		// It signs people in (go-oidc, oauth2), and locks the file of their credentials (go-internal). Programs that
		// give credentials speak the types of client-go (ADR 0052). With chandler dev it runs all services, so that
		// each package of theirs counts, such as those that watch lists (ADR 0062) and keep quotas (ADR 0058).
		{Module: "cmd/chandler", Direct: 16, Linked: 1370},
		// An example imports what its readers have: the client, and the standard library.
		{Module: "examples/port", Direct: 0},
		{Module: "test", Direct: 10},
	}
}

const (
	// maxFileLines bounds a file that people write and read.
	maxFileLines = 600
	// maxPackageFiles bounds the non-test files of a package.
	maxPackageFiles = 25
	// maxMethods bounds the methods of a type: one with more has several sides, and each is a type.
	maxMethods = 40
	// maxFields bounds the fields of a struct.
	maxFields = 20
)

// larger are the types that exceed maxMethods or maxFields, by package and name, with the reason. One that no longer
// does must leave the list.
func larger() map[string]string {
	return map[string]string{
		"cmd/chandler/client.Client":         "one method for each operation that commands use, in the types of the gateway (ADR 0066)",
		"libs/catalog/compare.schema":        "mirrors the fields of an OpenAPI schema",
		"libs/events.InstallPlanProposed":    "all that a decision says, in one record",
		"services/gateway/model.Catalog":     "the fields of the resource in the REST API",
		"services/gateway/model.InstallPlan": "the fields of the resource in the REST API",
		"services/gateway/model.Decision":    "the fields of the resource in the REST API",
		"services/resolver/sat.Solver":       "one algorithm over one state (ADR 0014)",
	}
}
