package rules

const warnsAlone = "A warning, or a note, everywhere: nothing is refused."

var catalogRules = []Rule{
	{
		ID: "R-CAT-1", Kind: Catalog,
		Demands: "A catalog is a tree of JSON and YAML documents that can be read, within the bounds of files, " +
			"directories and bytes.", Why: "What cannot be read may hold a package that somebody has installed.",
		Mend: "Mend the file at the place that is named, or exclude it in `.indexignore`; give a directory that " +
			"holds the catalog alone.",
	},
	{
		ID: "R-CAT-2", Kind: Catalog,
		Demands: "`.indexignore` can be read; it excludes files by patterns of gitignore.",
		Why:     "Otherwise files would be taken for catalog content that are none.",
		Mend:    "Mend the patterns, or remove the file.",
	},
	{
		ID: "R-CAT-4", Kind: Catalog,
		Demands:    "Beside bundle directories stand only bundle directories and files that belong to the catalog.",
		Why:        "A directory that is neither may be a bundle that lost its manifests.",
		Mend:       "Move the file away, or make the directory a bundle with `manifests/` and `metadata/`.",
		Strictness: warnsAlone,
	},
	{
		ID: "R-CAT-6", Kind: Catalog,
		Demands: "Each document is an object with `schema`; the keys `schema`, `package` and `name` occur once, " +
			"whatever their case, and are strings.", Why: "Without them nobody can say what the document is.",
		Mend: "Add or mend the key, or exclude the file in `.indexignore`.",
	},
	{
		ID: "R-CAT-7", Kind: Catalog,
		Demands: "A schema of one's own begins with a domain that one owns; `olm.` is reserved.",
		Why:     "Later versions of OLM may give the name another meaning.",
		Mend:    "Rename the schema, such as `example.com.name`.", Strictness: warnsAlone,
	},
	{
		ID: "R-CAT-10", Kind: Catalog, Demands: "A catalog holds no templates (`olm.template.*`, `olm.semver`).",
		Why:        "A template is what a catalog is made from; it is passed over.",
		Mend:       "Expand it with `chandler catalog template`, or exclude the file in `.indexignore`.",
		Strictness: warnsAlone,
	},
	{
		ID: "R-CAT-18", Kind: Catalog, Demands: "A bundle has at most one `olm.csv.metadata`.",
		Why: "Two could say different things of one operator.", Mend: "Keep one.", Strictness: warnsAlone,
	},
	{
		ID: "R-CAT-20", Kind: Catalog, Demands: "The name of a package is a DNS-1123 label.",
		Why: "It becomes part of names in clusters.", Mend: "Use at most 63 lower-case letters, digits and `-`.",
	},
	{
		ID: "R-CAT-21", Kind: Catalog, Demands: "There is one `olm.package` of each name.",
		Why: "Two would each say which channel is the default.", Mend: "Remove one, or rename it.",
	},
	{
		ID: "R-CAT-22", Kind: Catalog,
		Demands: "A channel names a package that is there, has a name, and is the only one of this name in its package.", Why: "Subscriptions name channels.", Mend: "Correct `package` or `name`, or join the two.",
	},
	{
		ID: "R-CAT-23", Kind: Catalog, Demands: "Each entry of a channel has a name, and occurs once.",
		Why:  "An entry is a step of the upgrade graph; twice it would have two meanings.",
		Mend: "Keep one entry of each name.",
	},
	{
		ID: "R-CAT-24", Kind: Catalog,
		Demands: "A bundle names a package that is there, and its name is the only one in the package.",
		Why:     "Plans name bundles.", Mend: "Correct `package` or `name`, or remove one of the two.",
	},
	{
		ID: "R-CAT-25", Kind: Catalog, Demands: "Properties have a type and a value of the form that their type wants.",
		Why: "Dependencies are decided upon them.", Mend: "Correct the value at the place that is named.",
	},
	{
		ID: "R-CAT-26", Kind: Catalog,
		Demands: "A bundle has exactly one property `olm.package`, for its own package, with a semantic version: " +
			"three numbers, no leading `v`, no leading zeros.",
		Why:  "Ranges and orders of versions are computed with it.",
		Mend: "Set `packageName` and `version`; in a bundle directory, the version of the CSV.",
	},
	{
		ID: "R-CAT-27", Kind: Catalog,
		Demands: "A release has at most 20 characters: identifiers of a semantic pre-release, joined by dots.",
		Why:     "It orders builds of one version.", Mend: "Write it like `1` or `2.rc1`.",
	},
	{
		ID: "R-CAT-28", Kind: Catalog, Demands: "Images are valid references.",
		Why:  "They are pulled, and mirrored for clusters without network.",
		Mend: "Write `registry/repository:tag`, or `@sha256:…`.",
	},
	{
		ID: "R-CAT-29", Kind: Catalog, Demands: "Every bundle is an entry of a channel.",
		Why: "Nobody can install it otherwise.", Mend: "Add it to the entries of a channel, or remove the bundle.",
	},
	{
		ID: "R-CAT-30", Kind: Catalog,
		Demands: "Every entry of a channel has its bundle; only what is named in `replaces` and `skips` may be absent.",
		Why:     "An upgrade could lead to something that is not there.",
		Mend:    "Add the bundles, or name them in `replaces` and `skips` only.",
	},
	{
		ID: "R-CAT-31", Kind: Catalog, Demands: "The default channel is set and is a channel of the package.",
		Why: "Subscriptions without a channel follow it.", Mend: "Set `defaultChannel` to one of the channels.",
	},
	{
		ID: "R-CAT-32", Kind: Catalog,
		Demands: "A package has at most one `olm.deprecations`, whose entries each name something that is there, " +
			"once, with a message.", Why: "People read the message and act on it.",
		Mend: "Join the documents and mend the entry that is named.",
	},
	{
		ID: "R-CAT-33", Kind: Catalog, Demands: "A package has a channel, and a channel an entry.",
		Why: "There would be nothing to install.", Mend: "Add one, or remove the package or channel.",
	},
	{
		ID: "R-CAT-34", Kind: Catalog, Demands: "The versions of a package's bundles differ.",
		Why: "Of two with one version none is newer.", Mend: "Give one another version, or a release.",
	},
	{
		ID: "R-CAT-35", Kind: Catalog,
		Demands: "A channel has exactly one head: one entry that no other one replaces or skips.",
		Why:     "The head is what is installed.", Mend: "Let the newest entry replace or skip the others.",
	},
	{
		ID: "R-CAT-36", Kind: Catalog,
		Demands: "The chain of `replaces` from the head reaches every entry that is not skipped.",
		Why:     "Who has a stranded version would never get a newer one.",
		Mend:    "Let a newer entry replace or skip it.",
	},
	{
		ID: "R-CAT-37", Kind: Catalog, Demands: "The chain of `replaces` does not lead back to itself.",
		Why: "An upgrade would never end.", Mend: "Let one of the entries replace an older version.",
	},
	{
		ID: "R-CAT-38", Kind: Catalog, Demands: "`skips` holds no empty names, and `skipRange` is a range of versions.",
		Why: "Upgrades follow them.", Mend: "Write a range like `>=1.0.0 <1.2.0`.",
	},
	{
		ID: "R-CAT-39", Kind: Catalog, Demands: "A bundle has an image, or its manifests.",
		Why:  "Without either there is nothing to install.",
		Mend: "Give the image, `olm.bundle.object` properties, or a bundle directory.",
	},
	{
		ID: "R-CAT-40", Kind: Catalog,
		Demands: "A bundle with a release is named `<package>-v<version>-<release>`, and its version has no build " +
			"metadata.", Why: "Names tell builds of one version apart.",
		Mend: "Rename the bundle, or drop what follows the `+`.",
	},
	{
		ID: "R-CAT-42", Kind: Catalog, Demands: "Names of bundles have the form `<operator>.v<version>`.",
		Why: "People read versions off names.", Mend: "Rename the bundle with its next version.",
		Strictness: warnsAlone,
	},
	{
		ID: "R-CAT-43", Kind: Catalog,
		Demands: "The root of a catalog is a directory that can be read, and what it holds can be stored.",
		Why:     "A file, or a name that is no UTF-8, is no catalog.",
		Mend:    "Name the directory that holds the catalog; mend the name that the message tells.",
	},
	{
		ID: "R-CAT-51", Kind: Catalog,
		Demands: "The manifests of a bundle are YAML or JSON objects of Kubernetes, with exactly one " +
			"ClusterServiceVersion.", Why: "It is what is installed.",
		Mend: "Mend the manifest at the place that is named.",
		Strictness: "Strict for authors (`chandler catalog validate`, `lint`); where users install, what OLM reads " +
			"is read, and the finding is a warning that names the place. A bundle that OLM could not read either is " +
			"left out.",
	},
	{
		ID: "R-CAT-52", Kind: Catalog, Demands: "A bundle names a channel, and brings the CRDs that its CSV owns.",
		Why:  "Without a channel nobody can subscribe to it; without its CRDs the operator cannot run.",
		Mend: "Set the annotation `operators.operatorframework.io.bundle.channels.v1`; add the manifests.",
	},
	{
		ID: "R-CAT-55", Kind: Catalog,
		Demands: "`metadata/annotations.yaml` names the package, the media type `registry+v1` and the directories of " +
			"a bundle.", Why: "It says what the directory is.", Mend: "Write the annotation that the message names.",
	},
	{
		ID: "R-CAT-56", Kind: Catalog,
		Demands: "`metadata/dependencies.yaml` is a list of dependencies with `type` and `value`.",
		Why:     "A dependency that cannot be read could not be installed along.",
		Mend:    "Write types `olm.package`, `olm.gvk` or `olm.constraint` with their values.",
	},
	{
		ID: "R-CAT-58", Kind: Catalog, Demands: "The annotation `olm.properties` of a CSV is a list of properties.",
		Why: "They become properties of the bundle.", Mend: "Write a JSON list of `{\"type\": …, \"value\": …}`.",
	},
	{
		ID: "R-CAT-75", Kind: Catalog,
		Demands: "An index in SQLite is a database of operators that nobody writes just now; `ci.yaml` beside bundle " +
			"directories says how versions follow each other.",
		Why: "The format is old, and read so that nobody is stuck with it.",
		Mend: "Migrate to a file-based catalog with `chandler catalog migrate`; close the program that writes the " +
			"database; let `ci.yaml` say the same everywhere.",
	},
	{
		ID: "R-CAT-76", Kind: Catalog,
		Demands: "A package manifest (`package.yaml`) stands beside the directories of its versions, and its " +
			"channels name one of them.", Why: "The format is no longer in use; it is read and converted.",
		Mend: "Put the directories beside it, or write a file-based catalog.",
	},
	{
		ID: "R-CRD-6", Kind: Catalog,
		Demands:    "A CustomResourceDefinition can be read, and its schemas are of the form that Kubernetes takes.",
		Why:        "What an upgrade breaks is computed from it.",
		Mend:       "Mend the CRD as `kubectl apply --dry-run=server` would want it.",
		Strictness: "What cannot be read counts as everything: an upgrade with it is not taken for harmless.",
	},
	{
		ID: "R-RES-25", Kind: Catalog, Demands: "`failureMessage` of a constraint is a text.",
		Why: "It is shown where the constraint cannot be met.", Mend: "Write a sentence.",
	},
	{
		ID: "R-RES-26", Kind: Catalog,
		Demands: "A CEL rule of a constraint compiles, gives true or false, and stays within its budget of work.",
		Why:     "It decides whether a bundle meets a dependency.",
		Mend:    "Mend the expression; `properties` is the list of the candidate's properties.",
	},
	{
		ID: "R-RES-27", Kind: Catalog, Demands: "`not` stands inside `all` or `any`.",
		Why: "Alone it excludes candidates and chooses none.", Mend: "Put it into an `all` beside what is wanted.",
	},
	{
		ID: "R-RES-29", Kind: Catalog, Demands: "A constraint is no larger than the bound that the message tells.",
		Why: "It is evaluated for every candidate.", Mend: "Split it into several properties `olm.constraint`.",
	},
	{
		ID: "R-RES-30", Kind: Catalog, Demands: "A constraint has exactly one kind, and no unknown fields.",
		Why:  "A field that nobody knows would be a wish that nobody meets.",
		Mend: "Write one of `package`, `gvk`, `cel`, `all`, `any`, `not`.",
	},
	{
		ID: "R-GRA-15", Kind: Catalog, Demands: "The graph of a channel has one head, no cycle and one chain.",
		Why:        "Otherwise the next version of a subscription cannot be told.",
		Mend:       "See R-CAT-35, R-CAT-36 and R-CAT-37.",
		Strictness: "Subscriptions to the channel do not resolve; those to other channels do.",
	},
}
