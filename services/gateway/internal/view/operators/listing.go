package operators

import (
	"context"

	"github.com/blang/semver/v4"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
)

// listing is how operators are listed.
var listing = readmodel.Listing[row]{
	Key:     []readmodel.Column{{SQL: "o.cluster"}, {SQL: "o.namespace"}, {SQL: "o.name"}},
	KeyOf:   func(r row) []string { return []string{r.Cluster, r.Namespace, r.Name} },
	Cluster: "o.cluster",
	Sorts: map[string]readmodel.Sort[row]{
		"name":    {Column: readmodel.Column{SQL: "o.name"}, Of: func(r row) string { return r.Name }},
		"package": {Column: readmodel.Column{SQL: "o.package"}, Of: func(r row) string { return r.Package }},
		"phase":   {Column: readmodel.Column{SQL: "o.phase"}, Of: func(r row) string { return r.Phase }},
		"created": {
			Column: readmodel.Column{SQL: "o.installed", Type: readmodel.Time},
			Of:     func(r row) string { return readmodel.At(r.Installed) },
		},
		"changed": {
			Column: readmodel.Column{SQL: "o.updated", Type: readmodel.Time},
			Of:     func(r row) string { return readmodel.At(r.Updated) },
		},
	},
	Fields: map[string]readmodel.Column{
		"metadata.name": {SQL: "o.name"}, "metadata.namespace": {SQL: "o.namespace"}, "cluster": {SQL: "o.cluster"},
		"package": {SQL: "o.package"}, "version": {SQL: "o.csv_version"}, "status.phase": {SQL: "o.phase"},
		"status.reason": {SQL: "o.reason"}, "flapping": {SQL: "o.flapping", Type: readmodel.Bool},
		"drifted": {SQL: "(o.drifted > 0)", Type: readmodel.Bool},
	},
}

// AddVersions wants the version of an operator to lie in a range, as OLM writes one; cond takes the versions that do.
// What is no semantic version lies in none. "" wants nothing.
func AddVersions(ctx context.Context, q pg.Querier, w *readmodel.Where, cond, tenant, versions string) error {
	if versions == "" {
		return nil
	}
	fits, err := semver.ParseRange(versions)
	if err != nil {
		return errs.New(errs.Invalid, "%q is no range of versions, such as >=1.2.0 <2.0.0", versions).At("query.version",
			"version-range")
	}
	// A fleet has some hundred different versions, so that they are compared here.
	rows, err := q.Query(ctx, `select distinct csv_version from operators where tenant = $1`, tenant)
	if err != nil {
		return pg.Err(err)
	}
	chosen := []string{}
	var text string
	_, err = pgx.ForEachRow(rows, []any{&text}, func() error {
		if v, err := semver.Parse(text); err == nil && fits(v) {
			chosen = append(chosen, text)
		}
		return nil
	})
	w.Add(cond, chosen)
	return pg.Err(err)
}
