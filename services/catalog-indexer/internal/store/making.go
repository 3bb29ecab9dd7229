package store

import (
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/projection"
)

// Makings are what rebuilds make of the tables that follow intents and clusters. Those that they do not name are no
// folds of the log: content, documents, revisions and findings, and what came of comparing and indexing them.
func Makings(intents, clusters *bus.Consumer) []projection.Making {
	dirty := []string{"dirty"}
	// Variants and images are those of polls, and their history is that of what was served.
	aside := []string{"variants", "revisions", "bundle_images"}
	return []projection.Making{
		{
			Consumer: intents, Schema: "catalog", Handle: intents.Handle, Derived: []string{"catalogs"}, Marks: dirty,
			Aside: aside,
			// What polls note, and what they compare it with.
			Keep: map[string][]string{"catalogs": {
				"wanted", "looked", "fingerprint", "revision", "state", "reason", "message", "document", "failed_input",
				"updated", "variant", "reference", "resolved", "connection", "observed", "connected", "polled",
				"next_look", "error", "error_reason", "quarantined", "errors", "warnings", "infos", "template",
				"template_message",
			}},
		},
		{
			Consumer: clusters, Schema: "catalog", Handle: clusters.Handle, Derived: []string{"clusters"}, Marks: dirty,
			Aside: aside,
		},
	}
}
