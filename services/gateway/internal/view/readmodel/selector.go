package readmodel

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// maxRequirements bounds a selector: each is a condition of the query.
const maxRequirements = 32

// Label wants the labels in a column to be those that a selector chooses, in the syntax and with the meaning of
// Kubernetes: a=b,c!=d,e in (f,g),h,!i. "" chooses all.
func (w *Where) Label(column, selector string) error {
	return w.labels(column, selector, "query.label")
}

// Clusters wants the cluster that a column names to be one that the caller may list, with labels that a selector
// chooses: what it chooses tells the labels. "" chooses all.
func (w *Where) Clusters(column, selector string, who model.Caller) error {
	if selector == "" {
		return nil
	}
	rest := w.conds
	err := w.chosenClusters(selector, who)
	chosen := strings.Join(w.conds, " and ")
	w.conds = rest
	w.Add(column + " in (select x.name from clusters x where " + chosen + ")")
	return err
}

// chosenClusters wants the cluster x to be one that the caller may list and a selector chooses.
func (w *Where) chosenClusters(selector string, who model.Caller) error {
	w.conds = []string{"x.tenant = $1"} // as Tenant begins
	w.Within(who, access.List, access.Clusters, Places{Cluster: "x.name"})
	return w.labels("x.labels", selector, "query.clusterSelector")
}

// ClusterNames are the clusters that Clusters chooses.
func ClusterNames(ctx context.Context, q pg.Querier, who model.Caller, selector string) (map[string]bool, error) {
	w := Tenant("x.tenant", who.Tenant)
	if err := w.chosenClusters(selector, who); err != nil {
		return nil, err
	}
	rows, err := w.Query(ctx, q, "select x.name from clusters x", "")
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	var name string
	_, err = pgx.ForEachRow(rows, []any{&name}, func() error {
		names[name] = true
		return nil
	})
	return names, pg.Err(err)
}

// labels does the work; at is where the selector was given.
func (w *Where) labels(column, selector, at string) error {
	requirements, err := labels.ParseToRequirements(selector)
	if err != nil {
		return errs.New(errs.Invalid, "this is no label selector of Kubernetes: %s", err).At(at, "label-selector")
	}
	if len(requirements) > maxRequirements {
		return errs.New(errs.Invalid, "the selector has %d requirements, %d are allowed", len(requirements),
			maxRequirements).At(at, "max-items")
	}
	for _, r := range requirements {
		if err := w.require(column, r, at); err != nil {
			return err
		}
	}
	return nil
}

func (w *Where) require(column string, r labels.Requirement, at string) error {
	value := column + " ->> ?::text"
	values := r.ValuesUnsorted()
	switch r.Operator() {
	case selection.Exists:
		w.Add("jsonb_exists("+column+", ?)", r.Key())
	case selection.DoesNotExist:
		w.Add("not jsonb_exists("+column+", ?)", r.Key())
	case selection.NotEquals, selection.NotIn: // also what lacks the label
		w.Add("not coalesce(("+value+") = any (?::text[]), false)", r.Key(), values)
	case selection.GreaterThan, selection.LessThan:
		than, err := strconv.ParseInt(values[0], 10, 64)
		if err != nil {
			return errs.New(errs.Invalid, "%q is no whole number, and is to be compared", values[0]).At(at,
				"label-selector")
		}
		compare := " > "
		if r.Operator() == selection.LessThan {
			compare = " < "
		}
		// What is no number of 64 bits is neither greater nor less.
		w.Add("case when ("+value+") ~ '^-{0,1}[0-9]{1,18}$' then ("+value+")::bigint"+compare+"? else false end",
			r.Key(), r.Key(), than)
	default: // Equals, DoubleEquals, In
		if len(values) > 1 {
			w.Add("("+value+") = any (?::text[])", r.Key(), values)
			return nil
		}
		want, err := json.Marshal(map[string]string{r.Key(): values[0]})
		if err != nil {
			return errs.Wrap(errs.Internal, err, "write a label")
		}
		w.Add(column+" @> ?::jsonb", string(want)) // what indexes of labels answer
	}
	return nil
}
