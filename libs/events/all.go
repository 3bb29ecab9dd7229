package events

// All is the registry: every event type and version that exists, in the order of docs/events.md.
func All() []Definition {
	return []Definition{
		define(KindCluster, Gateway, ClusterRegistered{}, "A cluster was given to Chandler with a kubeconfig."),
		define(KindCluster, Gateway, ClusterCredentialReplaced{}, "Another kubeconfig is to be used for the cluster."),
		define(KindCluster, Gateway, ClusterRemoved{}, "Chandler lets go of the cluster; what is installed stays."),
		define(KindCluster, Installer, ClusterObserved{}, "The executor's view of the cluster changed."),
		define(KindCatalog, Gateway, CatalogAdded{}, "A catalog is to be indexed and offered."),
		define(KindCatalog, Gateway, CatalogChanged{}, "The catalog's source, priority or visibility changed."),
		define(KindCatalog, Gateway, CatalogRefreshRequested{}, "The indexer is asked to look at the source now."),
		define(KindCatalog, Gateway, CatalogRemoved{}, "The catalog is no longer offered; what is installed stays."),
		define(KindCatalog, Indexer, CatalogRevisionPublished{}, "A complete revision is served; the difference from the one before."),
		define(KindCatalog, Indexer, CatalogLoadFailed{}, "The source could not be taken; the revision before stays in service."),
		define(KindOperatorGroup, Gateway, OperatorGroupCreated{}, "Operators of the namespace serve this set of namespaces."),
		define(KindOperatorGroup, Gateway, OperatorGroupChanged{}, "The set or the settings changed."),
		define(KindOperatorGroup, Gateway, OperatorGroupDeleted{}, "The operator group is gone."),
		define(KindSubscription, Gateway, SubscriptionCreated{}, "Somebody wants to follow a channel of a package."),
		define(KindSubscription, Resolver, SubscriptionGenerated{}, "A dependency is followed from now on, too."),
		define(KindSubscription, Gateway, SubscriptionChanged{}, "The intent changed."),
		define(KindSubscription, Gateway, SubscriptionDeleted{}, "The intent ended; the installed operator stays."),
		define(KindSubscription, Resolver, ResolutionFailed{}, "Nothing can be planned, and why."),
		define(KindSubscription, Resolver, ResolutionSucceeded{}, "The subscription resolves, and to what."),
		define(KindInstallPlan, Resolver, InstallPlanProposed{}, "A plan with its steps, digests and reasons."),
		define(KindInstallPlan, Resolver, InstallPlanSuperseded{}, "Another decision takes the place of a plan not yet begun."),
		define(KindInstallPlan, Gateway, InstallPlanApproved{}, "A person approved exactly this digest on this base."),
		define(KindInstallPlan, Gateway, InstallPlanRejected{}, "A person ended the plan."),
		define(KindInstallPlan, Installer, InstallPlanStarted{}, "The executor began."),
		define(KindInstallPlan, Installer, InstallPlanBlocked{}, "The plan waits for something outside and goes on by itself."),
		define(KindInstallPlan, Installer, InstallPlanFinished{}, "Every step is done."),
		define(KindInstallPlan, Installer, InstallPlanFailed{}, "A step failed for good."),
		define(KindCSV, Installer, CSVPhaseChanged{}, "A ClusterServiceVersion entered a phase."),
		define(KindCSV, Installer, CSVRemoved{}, "The ClusterServiceVersion is gone from the cluster."),
		define(KindCSV, Installer, CSVFlapping{}, "The phase changes too often to record each change."),
		define(KindAccess, Gateway, EffectsStopped{}, "No plan may begin or take another step."),
		define(KindAccess, Gateway, EffectsResumed{}, "A person lets plans go on."),
	}
}
