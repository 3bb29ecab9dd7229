package rules

const warnsAlone = "A warning, or a note, everywhere: nothing is refused."

var catalogRules = []Rule{
	{
		ID: "R-CAT-1", Kind: Catalog,
		Demands: "A catalog is a tree of JSON and YAML documents that can be read, within the bounds of files, " +
			"directories and bytes.", Why: "A file that cannot be read may define a package that somebody has installed.",
		Fix: "Correct the file at the place that is named, or exclude it in `.indexignore`; name a directory that " +
			"contains nothing but the catalog.",
	},
	{
		ID: "R-CAT-2", Kind: Catalog,
		Demands: "`.indexignore` can be read; it excludes files by gitignore patterns.",
		Why:     "Otherwise other files would be read as catalog content.",
		Fix:     "Correct the patterns, or remove the file.",
	},
	{
		ID: "R-CAT-4", Kind: Catalog,
		Demands:    "What lies beside bundle directories is a bundle directory or a file of the catalog.",
		Why:        "A directory that is neither may be a bundle that lost its manifests.",
		Fix:        "Move the file away, or make the directory a bundle with `manifests/` and `metadata/`.",
		Strictness: warnsAlone,
	},
	{
		ID: "R-CAT-6", Kind: Catalog,
		Demands: "Each document is an object with `schema`; the keys `schema`, `package` and `name` occur once, " +
			"whatever their case, and are strings.", Why: "Without them the document has no meaning.",
		Fix: "Add or correct the key, or exclude the file in `.indexignore`.",
	},
	{
		ID: "R-CAT-7", Kind: Catalog,
		Demands: "A schema of your own begins with a domain that you own; `olm.` is reserved.",
		Why:     "Later versions of OLM may give the name another meaning.",
		Fix:     "Rename the schema, such as `example.com.name`.", Strictness: warnsAlone,
	},
	{
		ID: "R-CAT-10", Kind: Catalog, Demands: "A catalog holds no templates (`olm.template.*`, `olm.semver`).",
		Why:        "A catalog is made from a template; in the catalog itself it is ignored.",
		Fix:        "Expand it with `chandler catalog template`, or exclude the file in `.indexignore`.",
		Strictness: warnsAlone,
	},
	{
		ID: "R-CAT-18", Kind: Catalog, Demands: "A bundle has at most one `olm.csv.metadata`.",
		Why: "Two could contradict each other.", Fix: "Keep one.", Strictness: warnsAlone,
	},
	{
		ID: "R-CAT-20", Kind: Catalog, Demands: "The name of a package is a DNS-1123 label.",
		Why: "It becomes part of names in clusters.", Fix: "Use at most 63 lower-case letters, digits and `-`.",
	},
	{
		ID: "R-CAT-21", Kind: Catalog, Demands: "The names of packages differ: one `olm.package` for each.",
		Why: "Two could name different default channels.", Fix: "Remove one, or rename it.",
	},
	{
		ID: "R-CAT-22", Kind: Catalog,
		Demands: "A channel names a package that exists, and has a name that is unique in it.",
		Why:     "Subscriptions name channels.", Fix: "Correct `package` or `name`, or merge the two.",
	},
	{
		ID: "R-CAT-23", Kind: Catalog, Demands: "Each entry of a channel has a name, and occurs once.",
		Why: "An entry is a node of the update graph; with two of one name it would be ambiguous.",
		Fix: "Keep one entry of each name.",
	},
	{
		ID: "R-CAT-24", Kind: Catalog,
		Demands: "A bundle names a package that exists, and has a name that is unique in it.",
		Why:     "Plans name bundles.", Fix: "Correct `package` or `name`, or remove one of the two.",
	},
	{
		ID: "R-CAT-25", Kind: Catalog, Demands: "Properties have a type, and a value of the form that the type requires.",
		Why: "Dependencies are resolved with them.", Fix: "Correct the value at the place that is named.",
	},
	{
		ID: "R-CAT-26", Kind: Catalog,
		Demands: "A bundle has exactly one property `olm.package`, for its own package, with a semantic version: " +
			"three numbers, no leading `v`, no leading zeros.",
		Why: "Versions are compared with it, and ranges match it.",
		Fix: "Set `packageName` and `version`; in a bundle directory, the version of the CSV.",
	},
	{
		ID: "R-CAT-27", Kind: Catalog,
		Demands: "A release has at most 20 characters: identifiers of a semantic pre-release, joined by dots.",
		Why:     "It is the order of builds of one version.", Fix: "Write it like `1` or `2.rc1`.",
	},
	{
		ID: "R-CAT-28", Kind: Catalog, Demands: "Images are valid references.",
		Why: "They are pulled, and mirrored for clusters without network.",
		Fix: "Write `registry/repository:tag`, or `@sha256:…`.",
	},
	{
		ID: "R-CAT-29", Kind: Catalog, Demands: "Every bundle is an entry of a channel.",
		Why: "Nobody can install it otherwise.", Fix: "Add it to the entries of a channel, or remove the bundle.",
	},
	{
		ID: "R-CAT-30", Kind: Catalog,
		Demands: "Every entry of a channel has its bundle; only what is named in `replaces` and `skips` may be absent.",
		Why:     "An upgrade could lead to a version that does not exist.",
		Fix:     "Add the bundles, or name them in `replaces` and `skips` only.",
	},
	{
		ID: "R-CAT-31", Kind: Catalog, Demands: "The default channel is set and is a channel of the package.",
		Why: "Subscriptions without a channel follow it.", Fix: "Set `defaultChannel` to one of the channels.",
	},
	{
		ID: "R-CAT-32", Kind: Catalog,
		Demands: "A package has at most one `olm.deprecations`, whose entries each name something that exists, " +
			"once, with a message.", Why: "People read the message and act on it.",
		Fix: "Merge the documents, and correct the entry that is named.",
	},
	{
		ID: "R-CAT-33", Kind: Catalog, Demands: "A package has at least one channel, and a channel at least one entry.",
		Why: "There would be nothing to install.", Fix: "Add one, or remove the package or channel.",
	},
	{
		ID: "R-CAT-34", Kind: Catalog, Demands: "The versions of a package's bundles differ.",
		Why: "Of two with the same version none is newer.", Fix: "Give one of them another version, or a release.",
	},
	{
		ID: "R-CAT-35", Kind: Catalog,
		Demands: "A channel has exactly one head: one entry that no other one replaces or skips.",
		Why:     "The head is what is installed.", Fix: "Let the newest entry replace or skip the others.",
	},
	{
		ID: "R-CAT-36", Kind: Catalog,
		Demands: "The chain of `replaces` from the head reaches every entry that is not skipped.",
		Why:     "Users of a version outside the chain would never get a newer one.",
		Fix:     "Let a newer entry replace or skip it.",
	},
	{
		ID: "R-CAT-37", Kind: Catalog, Demands: "The chain of `replaces` does not lead back to itself.",
		Why: "An upgrade would never end.", Fix: "Let one of the entries replace an older version.",
	},
	{
		ID: "R-CAT-38", Kind: Catalog, Demands: "`skips` holds no empty names, and `skipRange` is a range of versions.",
		Why: "Upgrades follow them.", Fix: "Write a range like `>=1.0.0 <1.2.0`.",
	},
	{
		ID: "R-CAT-39", Kind: Catalog, Demands: "A bundle has an image, or its manifests.",
		Why: "Without either there is nothing to install.",
		Fix: "Give the image, `olm.bundle.object` properties, or a bundle directory.",
	},
	{
		ID: "R-CAT-40", Kind: Catalog,
		Demands: "A bundle with a release is named `<package>-v<version>-<release>`, and its version has no build " +
			"metadata.", Why: "Builds of one version differ in their names.",
		Fix: "Rename the bundle, or drop what follows the `+`.",
	},
	{
		ID: "R-CAT-42", Kind: Catalog, Demands: "Names of bundles have the form `<operator>.v<version>`.",
		Why: "People see the version in the name.", Fix: "Rename the bundle with its next version.",
		Strictness: warnsAlone,
	},
	{
		ID: "R-CAT-43", Kind: Catalog,
		Demands: "The root of a catalog is a directory that can be read, and what it contains can be stored.",
		Why:     "A file, or a name that is no UTF-8, is no catalog.",
		Fix:     "Name the directory that contains the catalog; change the file name in the message.",
	},
	{
		ID: "R-CAT-51", Kind: Catalog,
		Demands: "The manifests of a bundle are YAML or JSON objects of Kubernetes, with exactly one " +
			"ClusterServiceVersion.", Why: "It is what is installed.",
		Fix: "Correct the manifest at the place that is named.",
		Strictness: "An error for authors (`chandler catalog validate`, `lint`). For users Chandler reads whatever OLM " +
			"reads, and the finding is a warning that names the place. A bundle that OLM cannot read either is left " +
			"out.",
	},
	{
		ID: "R-CAT-52", Kind: Catalog, Demands: "A bundle names a channel, and brings the CRDs that its CSV owns.",
		Why: "Without a channel it cannot be subscribed to; without its CRDs the operator cannot run.",
		Fix: "Set the annotation `operators.operatorframework.io.bundle.channels.v1`; add the manifests.",
	},
	{
		ID: "R-CAT-55", Kind: Catalog,
		Demands: "`metadata/annotations.yaml` names the package, the media type `registry+v1` and the directories of " +
			"a bundle.", Why: "It marks the directory as a bundle.", Fix: "Write the annotation that the message names.",
	},
	{
		ID: "R-CAT-56", Kind: Catalog,
		Demands: "`metadata/dependencies.yaml` is a list of dependencies with `type` and `value`.",
		Why:     "A dependency that cannot be read would not be installed.",
		Fix:     "Write types `olm.package`, `olm.gvk` or `olm.constraint` with their values.",
	},
	{
		ID: "R-CAT-58", Kind: Catalog, Demands: "The annotation `olm.properties` of a CSV is a list of properties.",
		Why: "They become properties of the bundle.", Fix: "Write a JSON list of `{\"type\": …, \"value\": …}`.",
	},
	{
		ID: "R-CAT-75", Kind: Catalog,
		Demands: "An SQLite index is a database of operators to which no program is writing; `ci.yaml` beside bundle " +
			"directories says in which order versions follow each other.",
		Why: "The format is obsolete, and is read so that its users can migrate.",
		Fix: "Migrate to a file-based catalog with `chandler catalog migrate`; stop the program that writes the " +
			"database; let all `ci.yaml` files agree.",
	},
	{
		ID: "R-CAT-76", Kind: Catalog,
		Demands: "A package manifest (`package.yaml`) lies beside the directories of its versions, and each of its " +
			"channels names one of them.", Why: "The format is no longer in use; it is read and converted.",
		Fix: "Move the directories next to it, or write a file-based catalog.",
	},
	{
		ID: "R-CRD-6", Kind: Catalog,
		Demands:    "A CustomResourceDefinition can be read, and its schemas have the form that Kubernetes accepts.",
		Why:        "The breaking changes of an upgrade are computed from it.",
		Fix:        "Correct the CRD until `kubectl apply --dry-run=server` accepts it.",
		Strictness: "An upgrade with a CRD that cannot be read counts as a breaking change.",
	},
	{
		ID: "R-RES-25", Kind: Catalog, Demands: "`failureMessage` of a constraint is a string.",
		Why: "It is shown if the constraint cannot be met.", Fix: "Write a sentence.",
	},
	{
		ID: "R-RES-26", Kind: Catalog,
		Demands: "A CEL rule of a constraint compiles, is true or false, and stays within its cost limit.",
		Why:     "It decides whether a bundle meets a dependency.",
		Fix:     "Correct the expression; `properties` is the list of the candidate's properties.",
	},
	{
		ID: "R-RES-27", Kind: Catalog, Demands: "`not` occurs only inside `all` or `any`.",
		Why: "By itself it only excludes candidates.", Fix: "Put it into an `all` together with what is required.",
	},
	{
		ID: "R-RES-29", Kind: Catalog, Demands: "A constraint is no larger than the limit in the message.",
		Why: "It is evaluated for every candidate.", Fix: "Split it into several properties `olm.constraint`.",
	},
	{
		ID: "R-RES-30", Kind: Catalog, Demands: "A constraint has exactly one kind, and no unknown fields.",
		Why: "An unknown field would be a requirement that is silently ignored.",
		Fix: "Write one of `package`, `gvk`, `cel`, `all`, `any`, `not`.",
	},
	{
		ID: "R-GRA-15", Kind: Catalog, Demands: "The graph of a channel has one head, no cycle and one chain.",
		Why:        "Otherwise the next version of a subscription is not defined.",
		Fix:        "See R-CAT-35, R-CAT-36 and R-CAT-37.",
		Strictness: "Subscriptions to the channel do not resolve; those to other channels do.",
	},
}
