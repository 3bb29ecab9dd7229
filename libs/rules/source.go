package rules

var sourceRules = []Rule{
	{
		ID: "R-CAT-60", Kind: Source,
		Demands: "A catalog image carries a label that says where the catalog is in it; a bundle image has the labels " +
			"of a bundle.", Why: "Nothing else shows what an image contains.",
		Fix: "Build it with `chandler catalog dockerfile`, or set the label " +
			"`operators.operatorframework.io.index.configs.v1`.",
	},
	{
		ID: "R-CAT-70", Kind: Source,
		Demands: "The address of a catalog server is `host:port`, and it serves `api.Registry`.",
		Why:     "The API is gRPC.", Fix: "Name host and port, such as `catalog.ns.svc:50051`.",
	},
	{
		ID: "R-CAT-84", Kind: Source,
		Demands: "A CatalogSource of type configmap or internal names a ConfigMap that can be read, with the keys " +
			"`packages`, `customResourceDefinitions` and `clusterServiceVersions`.",
		Why: "The catalog is made from them.",
		Fix: "Name namespace and name, add the key that is missing, and give a kubeconfig that may read it.",
	},
	{
		ID: "R-DIS-4", Kind: Source,
		Demands: "Credentials are of the kind that the source can use, are sent over TLS, and contain nothing that runs " +
			"a program or reads a file.",
		Why: "A credential that can be read in transit is compromised; a program in a kubeconfig would run on " +
			"Chandler's machine.",
		Fix: "Set the credential with `chandler catalog secret set`; embed tokens and certificates in a kubeconfig.",
	},
	{
		ID: "R-DIS-2", Kind: Source, Demands: "All images of an operator are listed in `relatedImages`, by digest.",
		Why: "Mirrors for clusters without network are made from the list.",
		Fix: "Add them to the CSV and to the bundle.",
	},
}
