package events

// FleetOverride is what some clusters of a fleet subscription get otherwise than the others. Of those that fit a
// cluster the most particular one holds (libs/fleet/override).
type FleetOverride struct {
	Name string `json:"name"`
	// Clusters and Selector are as in FleetPlacement; one of them is there, and all that is given must fit.
	Clusters []string `json:"clusters,omitempty"`
	Selector string   `json:"selector,omitempty"`
	// Config is the commitment to what is laid over the configuration of all, and MergedConfig to what comes of that:
	// the configuration of these clusters, which is that of all where Config is none.
	Config       string `json:"config,omitempty"`
	MergedConfig string `json:"mergedConfig,omitempty"`
	Approval     string `json:"approval,omitempty"` // Automatic, Manual; that of all without one
}

// RolloutOverride is what some clusters of a rollout get in place of what its intent says.
type RolloutOverride struct {
	Name     string   `json:"name"`             // of the override
	Clusters []string `json:"clusters"`         // sorted
	Config   string   `json:"config,omitempty"` // commitment, as in SubscriptionSpec
	Approval string   `json:"approval"`         // Automatic, Manual
}

// RolloutConflict is a cluster that fails, since several overrides are as particular for it and differ.
type RolloutConflict struct {
	Cluster   string   `json:"cluster"`
	Overrides []string `json:"overrides"` // names, sorted
}
