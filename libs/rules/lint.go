package rules

const asked = "Only where its group is asked for: `chandler catalog lint --group`. A warning."

var lintRules = []Rule{
	{
		ID: "R-CAT-41", Kind: Author, Demands: "The icon of a package has a media type that browsers show.",
		Why: "It is shown in catalogs.", Mend: "Use PNG, JPEG, GIF or SVG.",
	},
	{
		ID: "R-CAT-50", Kind: Author,
		Demands: "A bundle is a directory with `manifests/` and `metadata/` that can be read, within the bounds of " +
			"files and bytes; an image holds one bundle.", Why: "A bundle is one version of one operator.",
		Mend: "Give the directory of the bundle, and each bundle an image of its own.",
	},
	{
		ID: "R-CAT-64", Kind: Author,
		Demands: "What was published stays installable and has a way to the newest version.",
		Why:     "Somebody has it installed.", Mend: "Publish another version with an edge from the broken one.",
	},
	{
		ID: "R-CAT-65", Kind: Author,
		Demands: "An edit changes edges and channels of what is published, not its content.",
		Why:     "Content that changes under its name is not seen by clusters that have it.",
		Mend:    "Publish a new version.",
	},
	{
		ID: "R-CAT-80", Kind: Author,
		Demands: "A basic template holds entries, in which a bundle has schema and image alone.",
		Why:     "The rest comes from the image.", Mend: "Take out the other fields.",
	},
	{
		ID: "R-CAT-81", Kind: Author,
		Demands: "A semver template lists bundles of one package under candidate, fast and stable, each image once, " +
			"with versions that have an order.", Why: "Channels and edges are made from the versions.",
		Mend: "Mend the list at the place that is named.",
	},
	{
		ID: "R-CAT-82", Kind: Author,
		Demands: "A substitution names two images of one package, of which the base is in a channel.",
		Why:     "One takes the place of the other in the graph.", Mend: "Correct `name` and `base`.",
	},
	{
		ID: "R-CAT-59/structure-directory", Kind: Author,
		Demands: "A bundle has the directories `manifests` and `metadata` with files.", Why: "They are the bundle.",
		Mend: "Add what is missing.",
	},
	{
		ID: "R-CAT-59/structure-file", Kind: Author, Demands: "Every file of a bundle can be used.",
		Why:  "A file that is passed over would be missing in the cluster.",
		Mend: "Mend the file at the place that is named.",
	},
	{
		ID: "R-CAT-59/structure-annotations", Kind: Author,
		Demands: "`metadata/annotations.yaml` has the annotations that name package, channels and directories.",
		Why:     "Catalogs are made from them.", Mend: "Set the annotation that is named.",
	},
	{
		ID: "R-CAT-59/structure-kind", Kind: Author, Demands: "A bundle brings only kinds that bundles may bring.",
		Why: "Others are refused at installation.", Mend: "Let the operator create the object.",
	},
	{
		ID: "R-CAT-59/structure-size", Kind: Author, Demands: "The manifests are small enough when packed.",
		Why: "Clusters hold them in one object.", Mend: "Shorten descriptions of CRDs, or split the operator.",
	},
	{
		ID: "R-CAT-59/structure-csv", Kind: Author, Demands: "A bundle has exactly one ClusterServiceVersion.",
		Why: "It is one version of one operator.", Mend: "Add or remove one.",
	},
	{
		ID: "R-CAT-59/structure-owned-crd", Kind: Author,
		Demands: "The CRDs that the CSV owns are those in the bundle.",
		Why:     "Others would be missing, or owned by nobody.",
		Mend:    "Add the manifest, or the entry of `customresourcedefinitions.owned`.",
	},
	{
		ID: "R-CAT-59/structure-duplicate-crd", Kind: Author, Demands: "Each CRD, and each kind, is there once.",
		Why: "The last one would win by chance.", Mend: "Keep one.",
	},
	{
		ID: "R-CAT-59/csv-name", Kind: Author,
		Demands: "The name of the CSV is a DNS-1123 subdomain that can be the value of a label.",
		Why:     "Objects in clusters are named and labelled with it.",
		Mend:    "Use at most 63 lower-case letters, digits, `-` and `.`.",
	},
	{
		ID: "R-CAT-59/csv-install-modes", Kind: Author,
		Demands: "The CSV says of each of the four install modes, once, whether it is supported, and supports one.",
		Why:     "Operator groups are matched with them.", Mend: "Write all four.",
	},
	{
		ID: "R-CAT-59/csv-conversion", Kind: Author, Demands: "A CSV that converts CRDs supports AllNamespaces alone.",
		Why: "A conversion is one for the whole cluster.", Mend: "Set the other modes to false.",
	},
	{
		ID: "R-CAT-59/csv-examples", Kind: Author,
		Demands: "`alm-examples` is a JSON list with an example of every API that is owned, and of no other.",
		Why:     "Forms are filled from it.", Mend: "Add or correct the example.",
	},
	{
		ID: "R-CAT-59/csv-release", Kind: Author, Demands: "A CSV with a release does not substitute another bundle.",
		Why: "The two ways to rebuild a version exclude each other.", Mend: "Drop one of the two.",
	},
	{
		ID: "R-CAT-59/csv-related-images", Kind: Author, Demands: "Related images are valid references.",
		Why: "Mirrors are made from them.", Mend: "Correct the image.",
	},
	{
		ID: "R-CAT-59/csv-service-account", Kind: Author,
		Demands: "The bundle does not bring a service account that the CSV makes.", Why: "There would be two owners.",
		Mend: "Remove the manifest.",
	},
	{
		ID: "R-CAT-59/csv-annotation-case", Kind: Author,
		Demands: "Annotations are written in the case in which they have a meaning.",
		Why:     "Otherwise nobody reads them.", Mend: "Write it as the message does.",
	},
	{
		ID: "R-CAT-59/csv-properties", Kind: Author, Demands: "Properties stand in `metadata/properties.yaml`.",
		Why: "There they are found without reading the CSV.", Mend: "Move them.",
	},
	{
		ID: "R-CAT-59/crd-structure", Kind: Author, Demands: "An API server would take the CRDs.",
		Why: "Otherwise the installation fails in the cluster.", Mend: "Mend the field that is named.",
	},
	{
		ID: "R-CAT-59/objects-pdb", Kind: Author, Demands: "A PodDisruptionBudget lets one pod be away.",
		Why: "Otherwise no node can be drained.", Mend: "Raise `maxUnavailable`, or lower `minAvailable`.",
	},
	{
		ID: "R-CAT-59/objects-priority-class", Kind: Author,
		Demands: "A PriorityClass does not become the default of the cluster.",
		Why:     "It would change pods that are not the operator's.", Mend: "Set `globalDefault: false`.",
	},
	{
		ID: "R-CAT-59/objects-rbac-scc", Kind: Author,
		Demands: "An operator does not change the SecurityContextConstraints of the platform.",
		Why:     "Everybody relies on them.", Mend: "Bring your own, and name it in `resourceNames`.",
	},
	{
		ID: "R-CAT-59/objects-rbac-pdb", Kind: Author,
		Demands: "An operator does not write PodDisruptionBudgets freely.",
		Why:     "It could keep nodes from being drained.", Mend: "Bring them in the bundle.",
	},
	{
		ID: "R-CAT-59/hub-provider", Kind: Author, Demands: "The CSV names its provider.",
		Mend: "Set `spec.provider.name`.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/hub-maintainers", Kind: Author, Demands: "The CSV names a maintainer with a mail address.",
		Mend: "Add one.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/hub-links", Kind: Author, Demands: "Links have a name and an address.", Mend: "Correct the link.",
		Strictness: asked,
	},
	{
		ID: "R-CAT-59/hub-version", Kind: Author, Demands: "The CSV has a semantic version.",
		Mend: "Set `spec.version`.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/hub-icon", Kind: Author, Demands: "The CSV has one icon, with data and media type.",
		Mend: "Give it one.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/hub-min-kube-version", Kind: Author, Demands: "The CSV says which Kubernetes it needs.",
		Why: "Otherwise it is offered everywhere.", Mend: "Set `spec.minKubeVersion`.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/hub-capability", Kind: Author,
		Demands: "The annotation `capabilities` is one of the five levels.",
		Mend:    "Write one of those that the message lists.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/hub-categories", Kind: Author, Demands: "The CSV has categories of the standard list.",
		Why: "People browse by them.", Mend: "Set the annotation `categories`.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/practice-name", Kind: Author, Demands: "The CSV is named `<operator>.v<semantic version>`.",
		Mend: "Rename it with the next version.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/practice-resources", Kind: Author, Demands: "Containers request resources.",
		Why: "Otherwise they are placed by chance and evicted first.", Mend: "Set `resources.requests`.",
		Strictness: asked,
	},
	{
		ID: "R-CAT-59/practice-channels", Kind: Author, Demands: "Names of channels tell their pace.",
		Mend: "Begin the name with candidate, fast or stable.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/practice-crd-description", Kind: Author, Demands: "The CSV describes its CRDs.",
		Mend: "Say what each is for.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/practice-crd-rights", Kind: Author, Demands: "An operator does not create CRDs itself.",
		Why: "It could replace those of others.", Mend: "Bring them in the bundle.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/other-platforms", Kind: Author,
		Demands: "The labels of operating systems and architectures say what the images run on.",
		Why:     "Catalogs are filtered by them.", Mend: "Correct the labels.", Strictness: asked,
	},
	{
		ID: "R-CAT-59/other-removed-api", Kind: Author, Demands: "Manifests use APIs that Kubernetes still serves.",
		Mend: "Use the version that the message names.", Strictness: asked,
	},
}
