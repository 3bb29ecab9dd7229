package rules

const asked = "A warning, and only if its group is selected with `chandler catalog lint --group`."

var lintRules = []Rule{
	{
		ID: "R-CAT-41", Kind: Author, Demands: "The icon of a package has a media type that browsers show.",
		Why: "It is shown in catalogs.", Fix: "Use PNG, JPEG, GIF or SVG.",
	},
	{
		ID: "R-CAT-50", Kind: Author,
		Demands: "A bundle is a directory with `manifests/` and `metadata/` that can be read, within the bounds of " +
			"files and bytes; an image holds one bundle.", Why: "A bundle is one version of one operator.",
		Fix: "Give the directory of the bundle, and each bundle an image of its own.",
	},
	{
		ID: "R-CAT-64", Kind: Author,
		Demands: "Every published version stays installable and has an upgrade path to the newest version.",
		Why:     "Somebody has it installed.", Fix: "Publish another version with an edge from the broken one.",
	},
	{
		ID: "R-CAT-65", Kind: Author,
		Demands: "An edit changes edges and channels of published bundles, not their content.",
		Why:     "Clusters that have installed a bundle do not notice that its content has changed.",
		Fix:     "Publish a new version.",
	},
	{
		ID: "R-CAT-80", Kind: Author,
		Demands: "A basic template has a list of entries; a bundle in it has only schema and image.",
		Why:     "The rest comes from the image.", Fix: "Remove the other fields.",
	},
	{
		ID: "R-CAT-81", Kind: Author,
		Demands: "A semver template lists bundles of one package under candidate, fast and stable, each image once, " +
			"with versions that have an order.", Why: "Channels and edges are made from the versions.",
		Fix: "Correct the list at the place that is named.",
	},
	{
		ID: "R-CAT-82", Kind: Author,
		Demands: "A substitution names two images of one package, of which the base is in a channel.",
		Why:     "One replaces the other in the graph.", Fix: "Correct `name` and `base`.",
	},
	{
		ID: "R-CAT-59/structure-directory", Kind: Author,
		Demands: "A bundle has the directories `manifests` and `metadata` with files.", Why: "They are the bundle.",
		Fix: "Add what is missing.",
	},
	{
		ID: "R-CAT-59/structure-file", Kind: Author, Demands: "Every file of a bundle can be used.",
		Why: "An ignored file would be missing in the cluster.",
		Fix: "Correct the file at the place that is named.",
	},
	{
		ID: "R-CAT-59/structure-annotations", Kind: Author,
		Demands: "`metadata/annotations.yaml` has the annotations that name package, channels and directories.",
		Why:     "Catalogs are made from them.", Fix: "Set the annotation that is named.",
	},
	{
		ID: "R-CAT-59/structure-kind", Kind: Author, Demands: "A bundle contains only kinds that bundles may contain.",
		Why: "Others are refused at installation.", Fix: "Let the operator create the object.",
	},
	{
		ID: "R-CAT-59/structure-size", Kind: Author, Demands: "The compressed manifests are small enough.",
		Why: "OLM stores them in one object of the cluster.", Fix: "Shorten descriptions of CRDs, or split the operator.",
	},
	{
		ID: "R-CAT-59/structure-csv", Kind: Author, Demands: "A bundle has exactly one ClusterServiceVersion.",
		Why: "It is one version of one operator.", Fix: "Add or remove one.",
	},
	{
		ID: "R-CAT-59/structure-owned-crd", Kind: Author,
		Demands: "The CRDs that the CSV owns are those in the bundle.",
		Why:     "Others would be missing, or have no owner.",
		Fix:     "Add the manifest, or the entry of `customresourcedefinitions.owned`.",
	},
	{
		ID: "R-CAT-59/structure-duplicate-crd", Kind: Author, Demands: "Each CRD, and each kind, occurs once.",
		Why: "Otherwise the order of files would decide which one counts.", Fix: "Keep one.",
	},
	{
		ID: "R-CAT-59/csv-name", Kind: Author,
		Demands: "The name of the CSV is a DNS-1123 subdomain that can be the value of a label.",
		Why:     "Objects in clusters are named and labelled with it.",
		Fix:     "Use at most 63 lower-case letters, digits, `-` and `.`.",
	},
	{
		ID: "R-CAT-59/csv-install-modes", Kind: Author,
		Demands: "The CSV says of each of the four install modes, once, whether it is supported, and supports one.",
		Why:     "Operator groups are matched with them.", Fix: "Write all four.",
	},
	{
		ID: "R-CAT-59/csv-conversion", Kind: Author, Demands: "A CSV that converts CRDs supports AllNamespaces alone.",
		Why: "The conversion of a CRD exists once in a cluster.", Fix: "Set the other modes to false.",
	},
	{
		ID: "R-CAT-59/csv-examples", Kind: Author,
		Demands: "`alm-examples` is a JSON list with an example of every API that is owned, and of no other.",
		Why:     "Forms are filled from it.", Fix: "Add or correct the example.",
	},
	{
		ID: "R-CAT-59/csv-release", Kind: Author, Demands: "A CSV with a release does not substitute another bundle.",
		Why: "The two ways to rebuild a version exclude each other.", Fix: "Remove one of the two.",
	},
	{
		ID: "R-CAT-59/csv-related-images", Kind: Author, Demands: "Related images are valid references.",
		Why: "Mirrors are made from them.", Fix: "Correct the image.",
	},
	{
		ID: "R-CAT-59/csv-service-account", Kind: Author,
		Demands: "The bundle does not contain a service account that the CSV creates.", Why: "There would be two owners.",
		Fix: "Remove the manifest.",
	},
	{
		ID: "R-CAT-59/csv-annotation-case", Kind: Author,
		Demands: "Annotations are written in the case in which they have a meaning.",
		Why:     "Otherwise they are ignored.", Fix: "Write it as the message does.",
	},
	{
		ID: "R-CAT-59/csv-properties", Kind: Author, Demands: "Properties are in `metadata/properties.yaml`.",
		Why: "From there they can be read without the CSV.", Fix: "Move them.",
	},
	{
		ID: "R-CAT-59/crd-structure", Kind: Author, Demands: "An API server accepts the CRDs.",
		Why: "Otherwise the installation fails in the cluster.", Fix: "Correct the field that is named.",
	},
	{
		ID: "R-CAT-59/objects-pdb", Kind: Author, Demands: "A PodDisruptionBudget allows at least one disruption.",
		Why: "Otherwise no node can be drained.", Fix: "Raise `maxUnavailable`, or lower `minAvailable`.",
	},
	{
		ID: "R-CAT-59/objects-priority-class", Kind: Author,
		Demands: "A PriorityClass does not become the default of the cluster.",
		Why:     "It would affect pods of others.", Fix: "Set `globalDefault: false`.",
	},
	{
		ID: "R-CAT-59/objects-allowance", Kind: Author,
		Demands: "A bundle binds neither everybody nor cluster-admin, and no webhook of it is asked about rights or leases.",
		Why:     "It would give the cluster away: plans wait until an administrator allows exactly this bundle.",
		Fix:     "Name the rights that the operator needs, and the groups that the webhook is about.",
	},
	{
		ID: "R-CAT-59/objects-rbac-scc", Kind: Author,
		Demands: "An operator does not change the SecurityContextConstraints of the platform.",
		Why:     "Everybody relies on them.", Fix: "Add your own to the bundle, and name it in `resourceNames`.",
	},
	{
		ID: "R-CAT-59/objects-rbac-pdb", Kind: Author,
		Demands: "An operator has no permission to write any PodDisruptionBudget.",
		Why:     "It could keep nodes from being drained.", Fix: "Add them to the bundle.",
	},
	{
		ID: "R-CAT-59/hub-provider", Kind: Author, Demands: "The CSV names its provider.",
		Fix: "Set `spec.provider.name`.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/hub-maintainers", Kind: Author, Demands: "The CSV names a maintainer with a mail address.",
		Fix: "Add one.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/hub-links", Kind: Author, Demands: "Links have a name and an address.", Fix: "Correct the link.",
		Strictness: asked,
	},
	{
		ID: "R-CAT-59/hub-version", Kind: Author, Demands: "The CSV has a semantic version.",
		Fix: "Set `spec.version`.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/hub-icon", Kind: Author, Demands: "The CSV has one icon, with data and media type.",
		Fix: "Give it one.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/hub-min-kube-version", Kind: Author, Demands: "The CSV says which Kubernetes it needs.",
		Why: "Otherwise it is offered everywhere.", Fix: "Set `spec.minKubeVersion`.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/hub-capability", Kind: Author,
		Demands: "The annotation `capabilities` is one of the five levels.",
		Fix:     "Write one of those that the message lists.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/hub-categories", Kind: Author, Demands: "The CSV has categories of the standard list.",
		Why: "People browse by them.", Fix: "Set the annotation `categories`.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/practice-name", Kind: Author, Demands: "The CSV is named `<operator>.v<semantic version>`.",
		Fix: "Rename it with the next version.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/practice-resources", Kind: Author, Demands: "Containers request resources.",
		Why: "Otherwise they are placed by chance and evicted first.", Fix: "Set `resources.requests`.",
		Strictness: asked,
	},
	{
		ID: "R-CAT-59/practice-channels", Kind: Author, Demands: "Names of channels begin with candidate, fast or stable.",
		Fix: "Rename the channel.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/practice-crd-description", Kind: Author, Demands: "The CSV describes its CRDs.",
		Fix: "Say what each is for.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/practice-crd-rights", Kind: Author, Demands: "An operator does not create CRDs itself.",
		Why: "It could replace those of others.", Fix: "Add them to the bundle.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/other-platforms", Kind: Author,
		Demands: "The labels of operating systems and architectures say what the images run on.",
		Why:     "Catalogs are filtered by them.", Fix: "Correct the labels.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/other-removed-api", Kind: Author, Demands: "Manifests use APIs that Kubernetes still serves.",
		Fix: "Use the version that the message names.", Strictness: asked,
	},
}
