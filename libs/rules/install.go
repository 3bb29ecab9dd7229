package rules

var installRules = []Rule{
	{
		ID: "R-CAT-53", Kind: Install,
		Demands: "A bundle brings only kinds that OLM applies and then owns, in a form that can be read.",
		Why: "Whatever it grants is measured before somebody approves it; other kinds belong to the operator " +
			"itself.", Mend: "Let the operator create the object, or mend the manifest.",
	},
	{
		ID: "R-CAT-59", Kind: Install,
		Demands: "Manifests are of an API version that Chandler can install; `chandler catalog lint` has the checks " +
			"one by one.", Why: "An API that Kubernetes has removed is refused by every cluster.",
		Mend: "Use the API version that the message names.",
	},
	{
		ID: "R-CSV-1", Kind: Install, Demands: "The manifest of a ClusterServiceVersion has the form of its API.",
		Why: "Everything that is installed follows from it.", Mend: "Mend the field that the message names.",
	},
	{
		ID: "R-CSV-2", Kind: Install, Demands: "The install strategy is `deployment`.", Why: "There is no other one.",
		Mend: "Set `spec.install.strategy: deployment`.",
	},
	{
		ID: "R-CSV-20", Kind: Install,
		Demands: "Each deployment of the install strategy has a name and a spec of its form, and permissions name a " +
			"service account.", Why: "They are written as they are declared.",
		Mend: "Mend the deployment or permission that the message names.",
	},
	{
		ID: "R-CSV-31", Kind: Install,
		Demands: "The operator group targets what the install modes of the operator support.",
		Why:     "An operator that watches other namespaces than it can would fail, or miss its resources.",
		Mend:    "Choose another operator group: `chandler explain` says which modes there are.",
	},
	{
		ID: "R-CSV-40", Kind: Install,
		Demands: "The API service of an operator is served by a deployment of its install strategy.",
		Why:     "Service and certificate are made for that deployment.", Mend: "Correct `deploymentName`.",
	},
	{
		ID: "R-CSV-42", Kind: Install,
		Demands: "A webhook has a known type, a name of at least three segments, rules, and is served by a " +
			"deployment of the install strategy at one port.",
		Why:  "Service, certificate and webhook configuration are made from it.",
		Mend: "Mend the entry of `webhookdefinitions` that is named.",
	},
	{
		ID: "R-CSV-45", Kind: Install,
		Demands: "No webhook takes all API groups, OLM's own, or webhook configurations, and no two have one name.",
		Why:     "Such a webhook could stop the whole cluster, and its own removal.",
		Mend:    "Narrow the rules; give each webhook its own `generateName`.",
	},
	{
		ID: "R-CSV-46", Kind: Install,
		Demands: "An operator with a conversion webhook supports the install mode AllNamespaces alone, owns the CRDs " +
			"that it converts, and prunes unknown fields.",
		Why:  "A CRD is one for the whole cluster, and so is its conversion.",
		Mend: "Set the other install modes to false, name CRDs that are owned, set `preserveUnknownFields: false`.",
	},
	{
		ID: "R-SUB-14", Kind: Install,
		Demands: "`spec.config` of a subscription has the form of OLM: env, volumes, resources, selectors and the like.", Why: "It is merged into the operator's Deployments.", Mend: "Mend the field that the message names.",
	},
	{
		ID: "reserved-name", Kind: Install,
		Demands: "An object of a bundle does not have the name of one that Chandler itself keeps.",
		Why:     "The two would overwrite each other.", Mend: "Rename the object.",
	},
}

var planRules = []Rule{
	{
		ID: "R-IP-1", Kind: Plan,
		Demands: "An install plan is whole: name, digests, at least one bundle, and it has not ended where somebody " +
			"asks about it.", Why: "It is what people approve and clusters carry out.",
		Mend: "Look for the newest plan with `chandler get installplans`.",
	},
	{
		ID: "R-IP-10", Kind: Plan,
		Demands: "An approval names the digest and the base that the plan has now, an approver, and a time within " +
			"bounds.", Why: "Nothing else is carried out than what was shown.",
		Mend: "Look at the plan as it is now with `chandler describe installplan`, and approve that.",
	},
	{
		ID: "R-IP-11", Kind: Plan,
		Demands: "Nothing of a plan is carried out before its approval and outside of its maintenance windows.",
		Why:     "That is what approval is for.",
		Mend:    "Approve for long enough that a window opens (`--valid`), or change the policy.",
	},
	{
		ID: "R-IP-43", Kind: Plan, Demands: "A plan that has ended is not carried out again.",
		Why:  "What it was decided upon may be gone.",
		Mend: "Mend the reason that it tells; the next resolution makes a new plan.",
	},
	{
		ID: "R-OG-3", Kind: Plan, Demands: "The selector of an operator group is one of labels, as Kubernetes has it.",
		Why: "It chooses the namespaces that operators serve.", Mend: "Mend `spec.selector`.",
	},
	{
		ID: "R-OG-20", Kind: Plan, Demands: "A provided API is written `Kind.version.group`.",
		Why:  "Groups that provide the same API may not serve the same namespace.",
		Mend: "Write it like `Gauge.v1.sea.example.com`.",
	},
	{
		ID: "R-OG-30", Kind: Plan, Demands: "Provided APIs are set by a person for a static group only.",
		Why: "Those of others follow their operators.", Mend: "Set `staticProvidedAPIs: true`, or leave the list out.",
	},
	{
		ID: "R-OG-35", Kind: Plan,
		Demands: "No two operator groups that serve the same namespace provide the same API.",
		Why:     "Two operators would work on the same resources.",
		Mend: "Use the operator that is there, or give the groups namespaces that do not overlap; `chandler get " +
			"operators --serves NAMESPACE` names the other one.",
	},
	{
		ID: "R-OG-60", Kind: Plan, Demands: "A group with a service account is installed with that account's rights.",
		Why:  "An operator never gets more than the account has.",
		Mend: "Name a service account of the namespace; `chandler plan check` lists every right that it lacks.",
	},
	{
		ID: "R-TOK-1", Kind: Plan,
		Demands: "An identity of a cloud in `config.env` is named with all of its variables.",
		Why:     "Half an identity gets no token.", Mend: "Add the variables that the message names.",
	},
	{
		ID: "R-TOK-2", Kind: Plan, Demands: "A subscription with an identity of a cloud has approval Manual.",
		Why:  "A new version may need rights that an administrator of the cloud grants first.",
		Mend: "Set `installPlanApproval: Manual`.",
	},
	{
		ID: "R-TOK-3", Kind: Plan, Demands: "The variables of an identity have the form that their cloud wants.",
		Why:  "A misspelt one gets no token, and that shows late.",
		Mend: "Write it in the form that the message tells.",
	},
	{
		ID: "window", Kind: Plan, Demands: "A maintenance window can be read.", Why: "Plans wait for it.",
		Mend: "See docs/policies.md.",
	},
}
