package resolve_test

import (
	"fmt"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/resolver/internal/fixture"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// Two subscriptions in one namespace: the operator of the first one brings its dependency; no catalog has the package
// of the second one, which does not hold up the first.
func ExampleResolve() {
	lighthouse := catalog.Package{
		Name: "lighthouse", DefaultChannel: "stable",
		Channels: []catalog.Channel{{Name: "stable", Entries: []catalog.Entry{
			{Name: "lighthouse.v1.1.0", Replaces: "lighthouse.v1.0.0"}, {Name: "lighthouse.v1.0.0"},
		}}},
		Bundles: []catalog.Bundle{
			{Name: "lighthouse.v1.1.0", Version: "1.1.0", Properties: fixture.Properties(
				"lighthouse", "1.1.0", "pkg:lamp >=2.0.0")},
			{Name: "lighthouse.v1.0.0", Version: "1.0.0", Properties: fixture.Properties("lighthouse", "1.0.0")},
		},
	}
	lamp := fixture.Chain("lamp", "2.0.0").Bundle("2.0.0").P
	result := resolve.Resolve(resolution.Input{
		Scope:          resolution.Scope{Cluster: "harbour", Namespace: "ops"},
		View:           fixture.New().Add("fleet", 0, lighthouse, lamp),
		OperatorGroups: []resolution.OperatorGroup{{Name: "group"}},
		Subscriptions: []resolution.Subscription{
			{
				Name: "lighthouse", Package: "lighthouse", Channel: "stable", Catalog: "fleet",
				Approval: resolution.Automatic,
			},
			{Name: "buoy", Package: "buoy", Channel: "stable", Catalog: "fleet", Approval: resolution.Automatic},
		},
	})
	for _, c := range result.Components {
		for _, b := range c.Bundles {
			fmt.Printf("install %s from channel %s: %s\n", b.CSV, b.Channel, b.Reason)
		}
		if c.Failure != nil {
			fmt.Printf("%s: %s\n", c.Name, c.Failure.Reason)
			for _, s := range c.Failure.Statements {
				fmt.Println(" ", s.Text)
			}
		}
	}
	// Output:
	// buoy: ConstraintsNotSatisfiable
	//   no operators found in package buoy in catalog fleet referenced by subscription buoy
	//   subscription buoy to package buoy exists
	// install lamp.v2.0.0 from channel stable: RequiredPackage
	// install lighthouse.v1.1.0 from channel stable: ChannelHead
}
