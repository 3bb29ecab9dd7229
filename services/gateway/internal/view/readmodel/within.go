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

// Place is where one thing lies, with the meaning of Places.
type Place struct {
	Cluster, Namespace, Catalog string

	HasCatalog bool // it has a catalog, or names one
	OpenToAll  bool
}

// Sight is Within for things that are in memory. It remembers what was asked last, since whoever goes through a fleet
// comes by its clusters in their order; it is for one goroutine.
type Sight struct {
	layers [][]access.Scope

	asked   bool
	cluster string
	open    bool
	fit     [][]access.Scope // of layers, as far as their clusters fit that cluster
}

// SightOf is what a caller may do something with.
func SightOf(who model.Caller, v access.Verb, on access.Resource) Sight {
	layers, _ := who.Rights.Scopes(v, on)
	return Sight{layers: layers, fit: make([][]access.Scope, len(layers))}
}

// Sees says whether something lies in the scopes.
func (s *Sight) Sees(p Place) bool {
	if len(s.layers) == 0 {
		return true
	}
	if !s.asked || s.cluster != p.Cluster || s.open != p.OpenToAll {
		s.asked, s.cluster, s.open = true, p.Cluster, p.OpenToAll
		for i, scopes := range s.layers {
			s.fit[i] = s.fit[i][:0]
			for _, scope := range scopes {
				if !scope.LimitsClusters() || fit(p.Cluster, scope.Clusters, p.OpenToAll) {
					s.fit[i] = append(s.fit[i], scope)
				}
			}
		}
	}
	for _, scopes := range s.fit {
		if !slices.ContainsFunc(scopes, p.inScope) {
			return false
		}
	}
	return true
}

// inScope is the function of that name, but for clusters.
func (p Place) inScope(s access.Scope) bool {
	return (!s.Namespaces.Limited() || fit(p.Namespace, s.Namespaces, p.OpenToAll)) &&
		(!s.Catalogs.Limited() || !p.HasCatalog || s.Catalogs.Fit(p.Catalog))
}

// fit is fits.
func fit(name string, p access.Patterns, orNone bool) bool {
	return orNone && name == "" || p.Fit(name)
}
