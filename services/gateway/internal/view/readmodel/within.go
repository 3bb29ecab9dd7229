package readmodel

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Places are the columns by which a row lies in a scope; "" where a thing has no such place.
type Places struct {
	Cluster   string
	Namespace string
	Catalog   string // an expression: a name, or namespace/name
	// OpenToAll says that a row whose cluster or namespace is '' is everybody's, as a catalog is that all clusters see.
	OpenToAll bool
}

// Within keeps what the caller may see: the same rules as access.Scope, in SQL, so that pages stay full and counts are
// those of what is seen.
func (w *Where) Within(who model.Caller, v access.Verb, on access.Resource, p Places) {
	layers, unlimited := who.Rights.Scopes(v, on)
	if unlimited {
		return
	}
	for _, scopes := range layers {
		conds := make([]string, 0, len(scopes))
		var args []any
		for _, s := range scopes {
			cond, more := inScope(s, p)
			conds, args = append(conds, cond), append(args, more...)
		}
		if len(conds) == 0 {
			conds = []string{"false"}
		}
		w.Add("("+strings.Join(conds, " or ")+")", args...)
	}
}

// Told is an expression where the caller may see a thing at its places, and the empty text where not.
func (w *Where) Told(expression string, who model.Caller, v access.Verb, on access.Resource, p Places) string {
	rest := w.conds
	w.conds = nil
	w.Within(who, v, on, p)
	seen := strings.Join(w.conds, " and ")
	w.conds = rest
	if seen == "" {
		return expression
	}
	return "case when " + seen + " then " + expression + " else '' end"
}

// inScope is access.Scope.holds for the rows of a table.
func inScope(s access.Scope, p Places) (string, []any) {
	conds := []string{"true"}
	var args []any
	add := func(cond string, more []any) { conds, args = append(conds, cond), append(args, more...) }
	if s.LimitsClusters() {
		add(fits(p.Cluster, s.Clusters, p.OpenToAll))
	}
	if s.Namespaces.Limited() {
		add(fits(p.Namespace, s.Namespaces, p.OpenToAll))
	}
	switch {
	case !s.Catalogs.Limited():
	case p.Catalog != "":
		add(fits(p.Catalog, s.Catalogs, false))
	case p.Namespace == "":
		add("false", nil)
	}
	return "(" + strings.Join(conds, " and ") + ")", args
}

// fits says in SQL that a column fits patterns.
func fits(column string, p access.Patterns, orNone bool) (string, []any) {
	if column == "" {
		return "false", nil
	}
	conds := []string{"false"}
	var args []any
	if orNone {
		conds = append(conds, column+" = ''")
	}
	if len(p.Names) > 0 {
		conds, args = append(conds, column+" = any (?)"), append(args, slices.Clone(p.Names))
	}
	for _, prefix := range p.Prefixes {
		conds, args = append(conds, "starts_with("+column+", ?)"), append(args, prefix)
	}
	return "(" + strings.Join(conds, " or ") + ")", args
}
