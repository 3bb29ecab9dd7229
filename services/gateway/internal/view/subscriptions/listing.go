package subscriptions

import "github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"

// listing is how subscriptions are listed.
var listing = readmodel.Listing[row]{
	Key:     []readmodel.Column{{SQL: "s.cluster"}, {SQL: "s.namespace"}, {SQL: "s.name"}},
	KeyOf:   func(r row) []string { return []string{r.Cluster, r.Namespace, r.Name} },
	Cluster: "s.cluster",
	Sorts: map[string]readmodel.Sort[row]{
		"name":    {Column: readmodel.Column{SQL: "s.name"}, Of: func(r row) string { return r.Name }},
		"package": {Column: readmodel.Column{SQL: "s.package"}, Of: func(r row) string { return r.Package }},
		"created": {
			Column: readmodel.Column{SQL: "s.created", Type: readmodel.Time},
			Of:     func(r row) string { return readmodel.At(r.Created) },
		},
		"changed": {
			Column: readmodel.Column{SQL: "s.updated", Type: readmodel.Time},
			Of:     func(r row) string { return readmodel.At(r.Updated) },
		},
	},
	Fields: map[string]readmodel.Column{
		"metadata.name": {SQL: "s.name"}, "metadata.namespace": {SQL: "s.namespace"}, "cluster": {SQL: "s.cluster"},
		"spec.package": {SQL: "s.package"}, "spec.channel": {SQL: "s.channel"}, "spec.catalog": {SQL: "s.catalog"},
		"spec.approval":           {SQL: "coalesce(nullif(s.approval, ''), 'Automatic')"},
		"status.state":            {SQL: "(" + shownState + ")"},
		"status.phase":            {SQL: "coalesce(v.phase, '')"},
		"status.currentCSV":       {SQL: "s.current_csv"},
		"status.installedCSV":     {SQL: "s.installed_csv"},
		"status.upgradeAvailable": {SQL: UpgradeAvailable, Type: readmodel.Bool},
		"owner":                   {SQL: "s.owner"},
		"generated":               {SQL: "s.generated", Type: readmodel.Bool},
	},
}

// installedVersion wants the version of what a subscription s has installed to be one of some.
const installedVersion = `exists (select from operators o where o.tenant = s.tenant and o.cluster = s.cluster
	and o.namespace = s.namespace and o.name = s.installed_csv and o.csv_version = any (?))`
