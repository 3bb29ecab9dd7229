package reach

import (
	"net/netip"
	"slices"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Guard refuses what only this site reaches, but for networks that an operator allows.
type Guard struct{ Allowed []netip.Prefix }

// Check refuses an address that a name has led to. It is asked when the connection is made: what a name led to before
// says nothing.
func (g Guard) Check(a netip.Addr) error {
	if Of(a) == Public || slices.ContainsFunc(g.Allowed, func(p netip.Prefix) bool { return p.Contains(plain(a)) }) {
		return nil
	}
	return errs.New(errs.Invalid, "it leads to %s, and none of the networks that are allowed", Of(a))
}
