package serving

import (
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// renews reports a certificate in the place of which a new one is issued (R-CSV-5): one that is gone or does not serve,
// and one that is due. In an upgrade, while the plan of its operator is under way, one that is due is good enough, and
// is renewed after, unless that takes too long.
func renews(have certs.Kept, hosts []string, now time.Time, planned bool) bool {
	return have.Gone || have.Problem(now, hosts) != "" || have.Overdue(now) || have.Due(now) && !planned
}

// keeper is to whom the Secret of a certificate belongs: the operator that needs it, or one of its successors that has
// taken it over and shares it.
func keeper(i scope.Installed, s scope.RenderTarget, have certs.Kept) scope.RenderTarget {
	name := s.Bundle.CSV
	for range i.Chain {
		name = i.Chain.Successor(name)
		if slices.ContainsFunc(i.Operators, func(m *scope.Operator) bool {
			return m.Name() == name &&
				string(m.Object.GetUID()) == have.Owner
		}) {
			s.Bundle.CSV, s.UID = name, have.Owner
			break
		}
	}
	return s
}

// passing are the CRDs whose conversion may pass to an operator that converts own, or away from those of its chain.
func passing(i scope.Installed, name string, own []string) []string {
	out := slices.Clone(own)
	for _, m := range i.Operators {
		if m.Name() != name && i.Chain.Related(m.Name(), name) {
			out = append(out, certs.Converted(m.CSV)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
