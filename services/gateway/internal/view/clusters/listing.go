package clusters

import "github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"

// listing is how clusters are listed.
var listing = readmodel.Listing[row]{
	Key:     []readmodel.Column{{SQL: "name"}},
	KeyOf:   func(r row) []string { return []string{r.Name} },
	Cluster: "name",
	Sorts: map[string]readmodel.Sort[row]{
		"name":  {Column: readmodel.Column{SQL: "name"}, Of: func(r row) string { return r.Name }},
		"state": {Column: readmodel.Column{SQL: "state"}, Of: func(r row) string { return r.State }},
		"created": {
			Column: readmodel.Column{SQL: "registered", Type: readmodel.Time},
			Of:     func(r row) string { return readmodel.At(r.Registered) },
		},
		"changed": {
			Column: readmodel.Column{SQL: "updated", Type: readmodel.Time},
			Of:     func(r row) string { return readmodel.At(r.Updated) },
		},
	},
	Fields: map[string]readmodel.Column{
		"metadata.name": {SQL: "name"}, "state": {SQL: "state"}, "reason": {SQL: "reason"},
		"connection":        {SQL: "connection"},
		"distribution":      {SQL: "coalesce(facts ->> 'distribution', '')"},
		"kubernetesVersion": {SQL: "kubernetes_version"},
	},
}
