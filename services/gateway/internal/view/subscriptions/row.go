package subscriptions

import (
	"time"

	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// shownState is the table of R-SUB §4.3 in SQL. It says how far the subscription got, and nothing of how that does: the
// phase of what is installed stands beside it wherever it is shown.
const shownState = `case
	when s.current_csv = '' then ''
	when s.current_csv = s.installed_csv then 'AtLatestKnown'
	when s.plan_phase = 'Failed' and exists (select from operatorgroups g where g.tenant = s.tenant and g.cluster = s.cluster
		and g.namespace = s.namespace and g.spec ->> 'upgradeStrategy' = 'TechPreviewUnsafeFailForward') then 'UpgradeFailed'
	else 'UpgradePending' end`

const columns = `select s.cluster, s.namespace, s.name, s.package, s.channel, s.catalog, s.catalog_namespace, s.starting_csv, s.approval,
	s.config, s.generated, ` + shownState + ` as state, s.current_csv, s.installed_csv, coalesce(v.phase, '') as phase,
	s.plan_id, s.plan_name, s.plan_generation, s.plan_phase, s.plan_event, s.plan_since,
	case when s.plan_phase in ('Installing', 'Failed') then s.plan_state end as plan_state, now() as now,
	s.failed_reason, s.failed_document, s.failed_event, s.failed_since, s.missing_event, s.missing_since,
	s.spec_event, s.spec_since, s.installed_event, s.installed_since,
	coalesce(h.state, '') as catalog_state, coalesce(h.reason, '') as catalog_reason, coalesce(h.event_id, '') as catalog_event, h.since as catalog_since,
	coalesce(h.subject, '') as catalog_subject, coalesce(h.variant, '') as catalog_variant,
	coalesce(h.revision_event, '') as revision_event, h.revision_since,
	coalesce(h.state = 'Ready', false) or exists (select from catalogs c where ` + visibleCatalogs + `) as any_catalog,
	` + UpgradeAvailable + ` as upgrade_available, array(select ` + deprecations + ` order by 1) as deprecated,
	s.rollback_from, s.rollback_to, s.owner, s.target, s.labels, s.annotations, s.created, s.updated, s.stream, s.version
	from subscriptions s
	left join clusters k on k.tenant = s.tenant and k.name = s.cluster
	left join subscription_csvs v on v.tenant = s.tenant and v.cluster = s.cluster and v.namespace = s.namespace and v.name = s.installed_csv
	left join lateral ` + seenCatalog + ` h on true`

// row is a subscription with everything that its conditions are made of.
type row struct {
	Cluster, Namespace, Name string

	Labels      map[string]string
	Annotations string // commitment
	Created     time.Time
	Updated     time.Time
	Stream      string
	Version     int64
	Now         time.Time
	intent
	status
	plan
	catalogStatus
}

// intent is what was asked for.
type intent struct {
	Package, Channel, Catalog, CatalogNamespace, StartingCSV, Approval string

	Config       string // commitment
	Generated    bool
	SpecEvent    string
	SpecSince    *time.Time
	RollbackFrom string
	RollbackTo   string
	Owner        string // name of the fleet subscription
	Target       *model.SubscriptionTarget
}

// status is how far it came.
type status struct {
	State, CurrentCSV, InstalledCSV string

	Phase          string // of the installed operator
	InstalledEvent string
	InstalledSince *time.Time
	FailedReason   string
	FailedDocument string // digest of the explanation
	FailedEvent    string
	FailedSince    *time.Time
	MissingEvent   string
	// Deprecated are elements of its package, such as olm.channel/stable.
	Deprecated       []string
	UpgradeAvailable bool
	MissingSince     *time.Time
}

// plan is the install plan that it waits for, or had last.
type plan struct {
	PlanID         string
	PlanName       string
	PlanGeneration int64
	PlanPhase      string
	PlanEvent      string
	PlanSince      *time.Time
	// PlanState is read where more than the phase is shown: of plans that are Installing or Failed; nil else.
	PlanState *installplan.State
}

// catalogStatus is how the catalog does that it names, as its cluster sees that.
type catalogStatus struct {
	CatalogState   string
	CatalogReason  string
	CatalogEvent   string
	CatalogSince   *time.Time
	CatalogSubject string
	CatalogVariant string
	RevisionEvent  string // of the revision in service
	RevisionSince  *time.Time
	AnyCatalog     bool // the namespace sees one at all
}

// answer is the subscription as the API shows it, without what stands outside the log.
func (r row) answer() model.Subscription {
	if r.PlanPhase == "" { // it ended before it was begun
		r.plan = plan{}
	}
	s := model.Subscription{
		Cluster: r.Cluster, Namespace: r.Namespace, Name: r.Name, Metadata: model.Metadata{Labels: r.Labels},
		Spec: model.SubscriptionSpec{
			Package: r.Package, Channel: r.Channel, Catalog: r.Catalog, CatalogNamespace: r.CatalogNamespace,
			StartingCSV: r.StartingCSV, Approval: r.Approval,
		},
		Generated: r.Generated, Owner: r.Owner, Target: r.Target,
		Status: model.SubscriptionStatus{
			State: r.State, CurrentCSV: r.CurrentCSV, InstalledCSV: r.InstalledCSV, Phase: r.Phase,
			UpgradeAvailable: r.UpgradeAvailable, Deprecated: r.Deprecated,
		},
		CreatedAt: r.Created, UpdatedAt: r.Updated, Stream: r.Stream, Version: r.Version,
	}
	if r.RollbackFrom != "" {
		s.Status.Rollback = &model.Rollback{From: r.RollbackFrom, To: r.RollbackTo}
	}
	if r.FailedDocument != "" {
		s.Status.Explanation = &model.Explanation{Digest: r.FailedDocument}
	}
	s.Status.Conditions = r.conditions()
	if r.PlanName != "" {
		phase := r.PlanPhase
		if r.PlanState != nil { // an approval that expired is void
			phase = string(r.PlanState.PhaseAt(r.Now))
		}
		s.Status.InstallPlan = &model.PlanRef{
			ID: r.PlanID, Name: r.PlanName, Generation: r.PlanGeneration, Phase: phase,
		}
		s.Status.InstallPlanGeneration = r.PlanGeneration
	}
	return s
}
