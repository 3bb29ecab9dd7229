package subscription

import (
	"cmp"
	"slices"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/display"
	"github.com/chandler-fleet/chandler/libs/errs"
	gatewaycatalog "github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// FirstBundle is the bundle that a subscription begins with, as far as its package alone says it: its startingCSV, else
// the head of its channel, or of the default one.
func FirstBundle(in model.SubscriptionSpec, p *catalog.Package) (catalog.Bundle, bool) {
	if p == nil {
		return catalog.Bundle{}, false
	}
	if in.StartingCSV != "" {
		return p.Bundle(in.StartingCSV)
	}
	for _, c := range p.Channels {
		if c.Name == cmp.Or(in.Channel, p.DefaultChannel) {
			return display.Head(p, c)
		}
	}
	return catalog.Bundle{}, false
}

// CheckOffer refuses a package, channel or starting CSV that a ready catalog does not have.
func CheckOffer(in model.SubscriptionSpec, offer gatewaycatalog.Offer) error {
	if offer.Package == nil {
		return errs.New(errs.Unprocessable, "catalog %q has no package %q; it has: %s", in.Catalog, in.Package,
			rule.Choices(offer.Packages)).
			At("/package", "package-in-catalog")
	}
	if in.Channel != "" && !slices.ContainsFunc(offer.Package.Channels,
		func(c catalog.Channel) bool { return c.Name == in.Channel }) {
		return errs.New(errs.Unprocessable, "package %q of catalog %q has no channel %q; it has: %s",
			in.Package, in.Catalog, in.Channel, rule.Choices(channelNames(offer.Package))).At("/channel",
			"channel-in-package")
	}
	if in.StartingCSV == "" {
		return nil
	}
	entries := entryNames(offer.Package, in.Channel)
	if !slices.Contains(entries, in.StartingCSV) {
		return errs.New(errs.Unprocessable, "package %q of catalog %q has no entry %q to start with; it has: %s",
			in.Package, in.Catalog, in.StartingCSV, rule.Choices(entries)).At("/startingCSV", "entry-in-channel")
	}
	return nil
}

func channelNames(p *catalog.Package) []string {
	names := make([]string, 0, len(p.Channels))
	for _, c := range p.Channels {
		names = append(names, c.Name)
	}
	return names
}

// entryNames lists the entries of a channel, of all channels without one, sorted.
func entryNames(p *catalog.Package, channel string) []string {
	var names []string
	for _, c := range p.Channels {
		if channel != "" && c.Name != channel {
			continue
		}
		for _, e := range c.Entries {
			names = append(names, e.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// RollbackTo chooses where a rollback leads: to the version that was installed before, or to an earlier one that is
// named.
func RollbackTo(name Name, past model.Past, to string) (Rollback, error) {
	switch {
	case past.CSV == "":
		return Rollback{}, errs.New(errs.Unprocessable,
			"subscription %q has nothing installed that one could go back from", name.Subject()).At("/to",
			"earlier-version")
	case len(past.Before) == 0:
		return Rollback{}, errs.New(errs.Unprocessable, "nothing was installed before %s that one could go back to",
			past.CSV).At("/to", "earlier-version")
	case to == "":
		to = past.Before[0]
	case !slices.Contains(past.Before, to):
		return Rollback{}, errs.New(errs.Unprocessable, "%s was not installed before %s; there were: %s", to, past.CSV,
			rule.Choices(past.Before)).At("/to", "earlier-version")
	}
	return Rollback{From: past.CSV, To: to}, nil
}
