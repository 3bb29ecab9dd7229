// Package reach sorts addresses by who reaches them, so that what a stranger names (the images of a catalog, the server
// of a kubeconfig) leads to nobody whom only this machine, its link or its private network reaches.
package reach

import (
	"net/netip"
	"slices"
)

// Reach says who reaches an address, from everybody to the fewest.
type Reach int

// The kinds of addresses.
const (
	Public  Reach = iota
	Site          // a private network
	Machine       // this machine alone
	Link          // the same link: the metadata service of a cloud, with its credentials, is there
)

// String says it in a sentence.
func (r Reach) String() string {
	return [...]string{
		"a public address", "an address of a private network", "an address of this machine",
		"an address of this link, where clouds keep credentials",
	}[r]
}

// within are networks of which the library does not say who reaches them (the registries of special-purpose addresses
// of IANA, RFC 6890). Those for documentation are not among them: they lead nowhere.
var within = []struct {
	prefix netip.Prefix
	reach  Reach
}{
	{netip.MustParsePrefix("0.0.0.0/8"), Machine},
	{netip.MustParsePrefix("100.64.0.0/10"), Site}, // carriers, and some clouds as a private one
	{netip.MustParsePrefix("192.0.0.0/24"), Link},
	{netip.MustParsePrefix("198.18.0.0/15"), Site},
	{netip.MustParsePrefix("240.0.0.0/4"), Link},    // 255.255.255.255 among them
	{netip.MustParsePrefix("64:ff9b:1::/48"), Link}, // a translator of the site's own, to whatever it wants
	{netip.MustParsePrefix("2001::/32"), Site},      // Teredo
	{netip.MustParsePrefix("fec0::/10"), Site},      // site-local, as it once was
}

// metadata are the addresses of metadata services that lie in no link-local network.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254"), netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("168.63.129.16"),
}

// embedding are networks whose addresses hold one of IPv4, which a translator or a tunnel leads to.
var embedding = []struct {
	prefix netip.Prefix
	from   int // the first of its four bytes
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},    // NAT64
	{netip.MustParsePrefix("2002::/16"), 2},        // 6to4
	{netip.MustParsePrefix("::/96"), 12},           // IPv4-compatible
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, // IPv4-translated
}

// plain is the address of IPv4 that an address stands for, or itself.
func plain(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if a.IsUnspecified() || a.IsLoopback() {
		return a
	}
	for _, e := range embedding {
		if e.prefix.Contains(a) {
			b := a.As16()
			return netip.AddrFrom4([4]byte(b[e.from:]))
		}
	}
	return a
}

// Of sorts an address.
func Of(a netip.Addr) Reach {
	a = plain(a)
	switch {
	case slices.Contains(metadata, a), a.IsLinkLocalUnicast(), a.IsMulticast():
		return Link
	case a.IsLoopback(), a.IsUnspecified():
		return Machine
	case a.IsPrivate():
		return Site
	}
	for _, w := range within {
		if w.prefix.Contains(a) {
			return w.reach
		}
	}
	return Public
}
