package catalogs

import "github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"

// listing is how catalogs are listed: those of the hub first.
var listing = readmodel.Listing[row]{
	Key:     []readmodel.Column{{SQL: "c.cluster"}, {SQL: "c.namespace"}, {SQL: "c.name"}},
	KeyOf:   func(r row) []string { return []string{r.Cluster, r.Namespace, r.Name} },
	Cluster: "c.cluster",
	Sorts: map[string]readmodel.Sort[row]{
		"name":  {Column: readmodel.Column{SQL: "c.name"}, Of: func(r row) string { return r.Name }},
		"state": {Column: readmodel.Column{SQL: shownState}, Of: func(r row) string { return r.Shown }},
		"created": {
			Column: readmodel.Column{SQL: "c.added", Type: readmodel.Time},
			Of:     func(r row) string { return readmodel.At(r.Added) },
		},
		"changed": {
			Column: readmodel.Column{SQL: "c.updated", Type: readmodel.Time},
			Of:     func(r row) string { return readmodel.At(r.Updated) },
		},
	},
	Fields: map[string]readmodel.Column{
		"metadata.name": {SQL: "c.name"}, "metadata.namespace": {SQL: "c.namespace"}, "cluster": {SQL: "c.cluster"},
		"source.type": {SQL: "c.source_type"}, "state": {SQL: shownState}, "revision": {SQL: "c.revision"},
		"disabled": {SQL: "c.disabled", Type: readmodel.Bool},
	},
}
