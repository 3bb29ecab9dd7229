package store

import (
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/projection"
)

// Making is what a rebuild makes of the resolver's tables. Those that it does not name are no folds of the log: what
// decisions consulted and said (inputs, explanations, plan_documents, content_references), what the last one of a scope
// asked (reads, wanted_images), counters (scopes), samples, previews and the cache package_apis.
func (s *Store) Making(consumer *bus.Consumer) projection.Making {
	return projection.Making{
		Consumer: consumer, Schema: "resolver", Handle: s.Projection.Fold,
		Derived: []string{
			"clusters", "catalogs", "catalog_revisions", "bundle_images", "catalog_health", "approval_policies",
			"operator_groups", "subscriptions", "plans", "installed",
		},
		// That a finished plan needs no more subscriptions is found by those who decide; the replay finds some of it.
		Keep:  map[string][]string{"plans": {"settled"}},
		Marks: []string{"dirty"},
		// A decision that was made by the tables before compares the clock, which only goes up; wishes are of decisions.
		Aside: []string{"catalog_clock", "wanted_images"},
	}
}
