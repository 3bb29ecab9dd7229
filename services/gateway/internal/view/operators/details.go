package operators

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/cluster"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/clusters"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// named are operators by the key that reports have, and these keys in three columns for a query.
type named struct {
	at                          map[string]*model.Operator
	clusters, namespaces, names []string
}

func byName(items []model.Operator) named {
	n := named{at: make(map[string]*model.Operator, len(items))}
	for i := range items {
		o := &items[i]
		n.at[o.Cluster+"/"+o.Namespace+"/"+o.Name] = o
		n.clusters, n.namespaces, n.names = append(n.clusters, o.Cluster), append(n.namespaces, o.Namespace),
			append(n.names, o.Name)
	}
	return n
}

// reported is what is read of operator_details: every combination of the three lists, and a few rows more than are
// wanted, since the planner does not reach into a security barrier with the keys of a join.
const reported = ` from installer_api.operator_details
	where tenant = $1 and cluster = any ($2) and namespace = any ($3) and name = any ($4)`

// addConditions adds what clusters report of operators whatever their phase. Most have none.
func addConditions(ctx context.Context, q pg.Querier, tenant string, items []model.Operator) error {
	for i := range items {
		items[i].Conditions = []model.Condition{}
	}
	if len(items) == 0 {
		return nil
	}
	n := byName(items)
	rows, err := q.Query(ctx, `select cluster || '/' || namespace || '/' || name, conditions::text`+reported+`
		and conditions::text <> '[]'`, tenant, n.clusters, n.namespaces, n.names)
	if err != nil {
		return pg.Err(err)
	}
	var key, raw string
	_, err = pgx.ForEachRow(rows, []any{&key, &raw}, func() error {
		o := n.at[key]
		if o == nil {
			return nil // another one of these clusters, namespaces and names
		}
		return readmodel.Unpack("operator "+key, readmodel.Detail{Text: &raw, Into: &o.Conditions})
	})
	return pg.Err(err)
}

// addDetails adds conditions, and the details of operators of which the executor has reported any.
func addDetails(ctx context.Context, q pg.Querier, tenant string, items []model.Operator) error {
	for i := range items {
		items[i].Conditions = []model.Condition{}
	}
	if len(items) == 0 {
		return nil
	}
	n := byName(items)
	rows, err := q.Query(ctx, `select cluster || '/' || namespace || '/' || name, requirements::text, condition::text,
		drift::text, components::text, cut::text, updated, not_ready::text, conditions::text`+reported,
		tenant, n.clusters, n.namespaces, n.names)
	if err != nil {
		return pg.Err(err)
	}
	var key, drift, components, notReady, conditions string
	var requirements, condition, cut *string
	var d model.OperatorDetails
	_, err = pgx.ForEachRow(rows, []any{
		&key, &requirements, &condition, &drift, &components, &cut, &d.UpdatedAt, &notReady, &conditions,
	}, func() error {
		o := n.at[key]
		if o == nil {
			return nil // another one of these clusters, namespaces and names
		}
		o.Details = &model.OperatorDetails{Requirements: []model.Requirement{}, UpdatedAt: d.UpdatedAt}
		return readmodel.Unpack("operator "+key,
			readmodel.Detail{Text: requirements, Into: &o.Details.Requirements},
			readmodel.Detail{Text: condition, Into: &o.Details.Condition},
			readmodel.Detail{Text: &drift, Into: &o.Details.Drift},
			readmodel.Detail{Text: &components, Into: &o.Details.Components},
			readmodel.Detail{Text: cut, Into: &o.Details.LeftOut},
			readmodel.Detail{Text: &notReady, Into: &o.Details.NotReady},
			readmodel.Detail{Text: &conditions, Into: &o.Conditions})
	})
	if err != nil {
		return pg.Err(err)
	}
	return addRemovedAPIs(ctx, q, tenant, items)
}

// addRemovedAPIs adds what operators use and the next version of their cluster no longer serves.
func addRemovedAPIs(ctx context.Context, q pg.Querier, tenant string, items []model.Operator) error {
	versions := map[string]string{} // each cluster is asked for once
	for i := range items {
		o := &items[i]
		if o.Details == nil {
			continue
		}
		version, known := versions[o.Cluster]
		if !known {
			c, err := clusters.Observed(ctx, q, tenant, o.Cluster)
			if err != nil {
				return err
			}
			version = c.KubernetesVersion
			versions[o.Cluster] = version
		}
		o.Details.RemovedAPIs = cluster.RemovedAPIs(version, []cluster.Installed{{
			Namespace: o.Namespace, CSV: o.Name, Components: o.Details.Components,
			Requirements: o.Details.Requirements,
		}})
	}
	return nil
}
