package subscriptions

// What is so of a subscription s beside its state, in SQL. Summaries count by the same conditions as lists choose by.
const (
	// UpgradeAvailable: a newer version than the installed one was found for it. The way back to an older one is none.
	UpgradeAvailable = `(s.installed_csv <> '' and s.current_csv not in ('', s.installed_csv, s.rollback_to))`

	// RequiresApproval: its plan waits for people, also where an approval expired before the first step
	// (installplan.State.PhaseAt).
	RequiresApproval = `(s.plan_phase = 'RequiresApproval' or s.plan_phase = 'Installing'
		and s.plan_state -> 'Proposed' ->> 'approval' = 'Manual' and not coalesce((s.plan_state ->> 'Begun')::boolean, false)
		and coalesce((s.plan_state #>> '{Approval,Expires}')::timestamptz, '-infinity') <= now())`

	// WaitsSince is when RequiresApproval begins to be so, in microseconds since 1970: 0 where it is, null where it
	// never will be by time alone.
	WaitsSince = `(case when s.plan_phase = 'RequiresApproval' then 0
		when s.plan_phase = 'Installing' and s.plan_state -> 'Proposed' ->> 'approval' = 'Manual'
			and not coalesce((s.plan_state ->> 'Begun')::boolean, false)
		then coalesce((extract(epoch from (s.plan_state #>> '{Approval,Expires}')::timestamptz) * 1000000)::bigint, 0) end)`

	// DoesNotGoOn: it does not resolve, or its plan failed. A bundle that is being unpacked is no failure, nor is a
	// cluster that somebody cordoned.
	DoesNotGoOn = `(s.failed_reason not in ('', '` + conditionUnpacking + `', '` + conditionCordoned + `')
		or s.plan_phase = 'Failed')`

	// Deprecated is so where its catalog has deprecated the package, the channel that it names or the installed bundle.
	// The first part spares most subscriptions the rest.
	Deprecated = `(s.package = any (array(select x.package from subscription_deprecations x where x.tenant = current_setting('chandler.tenant', true)))
		and exists (select ` + deprecations + `))`
)

// CatalogName names the catalog of a subscription s in all of the fleet: one of a cluster with the cluster.
const CatalogName = `case when s.catalog_namespace = '' then s.catalog else s.cluster || '/' || s.catalog_namespace || '/' || s.catalog end`

// seenCatalog is the state of the catalog that a subscription s of cluster k names: the cluster's own one of the named
// namespace where there is such a one, else the hub's; one that was removed counts where there is no other.
const seenCatalog = `(select h.state, h.reason, h.event_id, h.since, h.subject, h.variant, h.revision_event, h.revision_since
	from subscription_catalogs h where h.tenant = s.tenant and ` + seenVariant + `
	and h.subject in (s.catalog, case when s.catalog_namespace <> '' then s.cluster || '/' || s.catalog_namespace || '/' || s.catalog else s.catalog end)
	order by h.state = '` + catalogGone + `', h.subject = s.catalog, h.variant = '' limit 1)`

// deprecations are the deprecated elements of a subscription s.
const deprecations = `d.element from ` + seenCatalog + ` h join subscription_deprecations d on d.tenant = s.tenant
	and d.subject = h.subject and d.variant = h.variant and d.package = s.package
	and d.element in ('olm.package', 'olm.channel/' || s.channel, 'olm.bundle/' || s.installed_csv)`
