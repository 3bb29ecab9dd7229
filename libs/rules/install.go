package rules

var installRules = []Rule{
	{
		ID: "R-CAT-53", Kind: Install,
		Demands: "A bundle contains only kinds that OLM applies and owns, in a form that can be read.",
		Why: "The permissions that a bundle grants are checked before it is approved; objects of other kinds belong " +
			"to the operator itself.", Fix: "Let the operator create the object, or correct the manifest.",
	},
	{
		ID: "R-CAT-59", Kind: Install,
		Demands: "Manifests are of an API version that Chandler can install; `chandler catalog lint` has the checks " +
			"one by one.", Why: "An API that Kubernetes has removed is refused by every cluster.",
		Fix: "Use the API version that the message names.",
	},
	{
		ID: "R-CSV-1", Kind: Install, Demands: "The manifest of a ClusterServiceVersion has the form of its API.",
		Why: "Everything that is installed follows from it.", Fix: "Correct the field that the message names.",
	},
	{
		ID: "R-CSV-2", Kind: Install, Demands: "The install strategy is `deployment`.", Why: "OLM has no other one.",
		Fix: "Set `spec.install.strategy: deployment`.",
	},
	{
		ID: "R-CSV-20", Kind: Install,
		Demands: "Each deployment of the install strategy has a name and a valid spec, and permissions name a service " +
			"account.", Why: "They are applied as they are declared.",
		Fix: "Correct the deployment or permission that the message names.",
	},
	{
		ID: "R-CSV-31", Kind: Install,
		Demands: "The install modes of the operator support the namespaces that the operator group targets.",
		Why:     "Otherwise the operator would fail, or miss resources.",
		Fix:     "Choose another operator group: `chandler explain` says which modes there are.",
	},
	{
		ID: "R-CSV-40", Kind: Install,
		Demands: "The API service of an operator is served by a deployment of its install strategy.",
		Why:     "Service and certificate are made for that deployment.", Fix: "Correct `deploymentName`.",
	},
	{
		ID: "R-CSV-42", Kind: Install,
		Demands: "A webhook has a known type, a name of at least three segments, rules, and is served by a " +
			"deployment of the install strategy at one port.",
		Why: "Service, certificate and webhook configuration are made from it.",
		Fix: "Correct the entry of `webhookdefinitions` that is named.",
	},
	{
		ID: "R-CSV-45", Kind: Install,
		Demands: "No webhook intercepts all API groups, those of OLM, or webhook configurations; names of webhooks differ.",
		Why:     "Such a webhook could stop the whole cluster, and its own removal.",
		Fix:     "Narrow the rules; give each webhook its own `generateName`.",
	},
	{
		ID: "R-CSV-46", Kind: Install,
		Demands: "An operator with a conversion webhook supports the install mode AllNamespaces alone, owns the CRDs " +
			"that it converts, and prunes unknown fields.",
		Why: "A CRD and its conversion exist once in a cluster.",
		Fix: "Set the other install modes to false, name only owned CRDs, set `preserveUnknownFields: false`.",
	},
	{
		ID: "R-SUB-14", Kind: Install,
		Demands: "`spec.config` of a subscription has the form that OLM defines: env, volumes, resources, selectors and more.",
		Why:     "It is merged into the operator's Deployments.", Fix: "Correct the field that the message names.",
	},
	{
		ID: "reserved-name", Kind: Install,
		Demands: "An object of a bundle does not have the name of an object of Chandler itself.",
		Why:     "The two would overwrite each other.", Fix: "Rename the object.",
	},
}

var planRules = []Rule{
	{
		ID: "R-IP-1", Kind: Plan,
		Demands: "An install plan is complete (name, digests, at least one bundle), and has not ended when it is acted on.", Why: "It is what people approve and clusters carry out.",
		Fix: "Find the newest plan with `chandler get installplans`.",
	},
	{
		ID: "R-IP-10", Kind: Plan,
		Demands: "An approval names the plan's present digest and base, an approver, and a validity within the limits.", Why: "Only what the approver has seen is carried out.",
		Fix: "See the present plan with `chandler describe installplan`, and approve that.",
	},
	{
		ID: "R-IP-11", Kind: Plan,
		Demands: "A plan is not started before its approval or outside of its maintenance windows.",
		Why:     "That is what approval is for.",
		Fix:     "Approve for long enough that a window opens (`--valid`), or change the policy.",
	},
	{
		ID: "R-IP-43", Kind: Plan, Demands: "A plan that has ended is not carried out again.",
		Why: "The state that it was decided on may have changed.",
		Fix: "Remove the cause that it names; the next resolution proposes a new plan.",
	},
	{
		ID: "R-OG-3", Kind: Plan, Demands: "The selector of an operator group is a label selector of Kubernetes.",
		Why: "It selects the namespaces that operators serve.", Fix: "Correct `spec.selector`.",
	},
	{
		ID: "R-OG-20", Kind: Plan, Demands: "A provided API is written `Kind.version.group`.",
		Why: "Groups that provide the same API may not serve the same namespace.",
		Fix: "Write it like `Gauge.v1.sea.example.com`.",
	},
	{
		ID: "R-OG-30", Kind: Plan, Demands: "Provided APIs are set by hand for static groups only.",
		Why: "For other groups they follow from the installed operators.",
		Fix: "Set `staticProvidedAPIs: true`, or omit the list.",
	},
	{
		ID: "R-OG-35", Kind: Plan,
		Demands: "No two operator groups that serve the same namespace provide the same API.",
		Why:     "Two operators would work on the same resources.",
		Fix: "Use the operator that is there, or give the groups namespaces that do not overlap; `chandler get " +
			"operators --serves NAMESPACE` names the other one.",
	},
	{
		ID: "R-OG-60", Kind: Plan,
		Demands: "Operators of a group with a service account are installed with the permissions of that account.",
		Why:     "An operator never gets more permissions than the account has.",
		Fix:     "Name a service account of the namespace; `chandler plan check` lists every permission that it lacks.",
	},
	{
		ID: "R-TOK-1", Kind: Plan,
		Demands: "A cloud identity in `config.env` has all of its variables.",
		Why:     "With an incomplete identity the operator gets no token.",
		Fix:     "Add the variables that the message names.",
	},
	{
		ID: "R-TOK-2", Kind: Plan, Demands: "A subscription with a cloud identity has approval Manual.",
		Why: "A new version may need permissions that an administrator of the cloud has to grant first.",
		Fix: "Set `installPlanApproval: Manual`.",
	},
	{
		ID: "R-TOK-3", Kind: Plan, Demands: "The variables of a cloud identity have the form that the cloud requires.",
		Why: "With a misspelt identity the operator gets no token, and the error appears only when it runs.",
		Fix: "Write it in the form that the message shows.",
	},
	{
		ID: "window", Kind: Plan, Demands: "A maintenance window can be read.", Why: "Plans wait for it.",
		Fix: "See docs/policies.md.",
	},
}
