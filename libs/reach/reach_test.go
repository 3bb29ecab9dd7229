package reach_test

import (
	"net/netip"
	"testing"

	"github.com/chandler-fleet/chandler/libs/reach"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]reach.Reach{
		"203.0.113.7": reach.Public, "2001:db8::1": reach.Public, "2002:cb00:7107::1": reach.Public,
		"::203.0.113.7": reach.Public, "64:ff9b::cb00:7107": reach.Public,
		"10.1.2.3": reach.Site, "192.168.0.1": reach.Site, "fd12::1": reach.Site, "100.64.0.1": reach.Site,
		"::ffff:10.0.0.1": reach.Site,
		"::ffff:0:a00:1":  reach.Site, "64:ff9b::a00:1": reach.Site, "2002:a00:1::": reach.Site,
		"::10.0.0.1": reach.Site,
		"198.18.0.1": reach.Site, "2001::1": reach.Site, "fec0::1": reach.Site,
		"127.0.0.1": reach.Machine, "::1": reach.Machine, "0.0.0.0": reach.Machine, "::": reach.Machine,
		"0.1.2.3": reach.Machine, "::ffff:127.0.0.1": reach.Machine, "64:ff9b::7f00:1": reach.Machine,
		"::127.0.0.1": reach.Machine, "2002:7f00:1::": reach.Machine,
		"169.254.169.254": reach.Link, "fe80::1": reach.Link, "fe80::1%eth0": reach.Link,
		"::ffff:169.254.169.254": reach.Link, "2002:a9fe:a9fe::": reach.Link, "::169.254.169.254": reach.Link,
		"64:ff9b::a9fe:a9fe": reach.Link, "64:ff9b:1::a9fe:a9fe": reach.Link, "fd00:ec2::254": reach.Link,
		"fd20:ce::254": reach.Link, "100.100.100.200": reach.Link, "168.63.129.16": reach.Link,
		"192.0.0.192": reach.Link, "224.0.0.1": reach.Link, "255.255.255.255": reach.Link,
	} {
		if got := reach.Of(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}
