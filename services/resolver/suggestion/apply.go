package suggestion

import (
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Words before the name of a target.
const (
	ofSubscription = "subscription/"
	ofOperator     = "operator/"
	ofGroup        = "operatorgroup/"
	ofPolicy       = "policy/"
	ofCatalog      = "catalog/"
)

// groupName is what an operator group is called that a suggestion makes up.
const groupName = "default"

// Apply is the input with the change made; ok is false where it does not fit the input.
func (r Suggestion) Apply(in resolution.Input) (out resolution.Input, ok bool) {
	_, name, _ := strings.Cut(r.Target, "/")
	in.Subscriptions = slices.Clone(in.Subscriptions)
	in.Installed = slices.Clone(in.Installed)
	switch r.Kind {
	case StartingCSV, Channel, Catalog, PackageName:
		return r.changeSubscription(in, name)
	case LeaveOut:
		in.Subscriptions = slices.DeleteFunc(in.Subscriptions,
			func(s resolution.Subscription) bool { return s.Name == name })
		for i := range in.Installed {
			if in.Installed[i].Subscription == name {
				in.Installed[i].Subscription = ""
			}
		}
	case RemoveOperator:
		leaves := r.from(fieldSubscription)
		in.Installed = slices.DeleteFunc(in.Installed, func(i resolution.Installed) bool { return i.CSV == name })
		in.Subscriptions = slices.DeleteFunc(in.Subscriptions,
			func(s resolution.Subscription) bool { return s.Name == leaves })
		for i := range in.Subscriptions {
			if in.Subscriptions[i].InstalledCSV == name {
				in.Subscriptions[i].InstalledCSV = ""
			}
		}
	case Subscribe:
		return r.subscribe(in, name)
	case RaiseBound, LiftBound:
		return r.changePolicy(in, name)
	case DisableCatalog:
		in.View = without{in.View, name}
	default:
		return r.changeGroups(in, name)
	}
	return in, true
}

func (r Suggestion) changeGroups(in resolution.Input, name string) (resolution.Input, bool) {
	switch r.Kind {
	case GroupTargets: // what a group serves is no part of a resolution
	case AddGroup:
		in.OperatorGroups = []resolution.OperatorGroup{{Name: name}}
	case KeepGroup:
		in.OperatorGroups = slices.DeleteFunc(slices.Clone(in.OperatorGroups),
			func(g resolution.OperatorGroup) bool { return g.Name != name })
	case GlobalCatalogs:
		in.OperatorGroups = slices.Clone(in.OperatorGroups)
		for i := range in.OperatorGroups {
			in.OperatorGroups[i].ExcludeGlobalCatalogs = false
		}
	default:
		return in, false
	}
	return in, true
}

func (r Suggestion) from(field string) string {
	for _, c := range r.Change {
		if c.Field == field {
			return c.From
		}
	}
	return ""
}

// to sets a value where the suggestion changes the field.
func (r Suggestion) to(field string, value *string) {
	for _, c := range r.Change {
		if c.Field == field {
			*value = c.To
		}
	}
}

func (r Suggestion) intent(s *resolution.Subscription) {
	before := *s
	r.to(fieldStartingCSV, &s.StartingCSV)
	r.to(fieldChannel, &s.Channel)
	r.to(fieldCatalog, &s.Catalog)
	r.to(fieldCatalogNamespace, &s.CatalogNamespace)
	if s.Catalog != before.Catalog || s.CatalogNamespace != before.CatalogNamespace {
		// suggestions name catalogs that are seen
		s.CatalogHidden = false
	}
	r.to(fieldPackage, &s.Package)
}

func (r Suggestion) changeSubscription(in resolution.Input, name string) (resolution.Input, bool) {
	for i := range in.Subscriptions {
		if in.Subscriptions[i].Name == name {
			r.intent(&in.Subscriptions[i])
			return in, true
		}
	}
	return in, false
}

// subscribe gives an installed operator a subscription, which it is bound to.
func (r Suggestion) subscribe(in resolution.Input, csv string) (resolution.Input, bool) {
	s := resolution.Subscription{Approval: resolution.Automatic}
	r.to(fieldSubscription, &s.Name)
	r.intent(&s)
	for i := range in.Installed {
		if in.Installed[i].CSV == csv && in.Installed[i].Subscription == "" {
			in.Installed[i].Subscription = s.Name
			in.Subscriptions = append(in.Subscriptions, s)
			return in, true
		}
	}
	return in, false
}

func (r Suggestion) changePolicy(in resolution.Input, name string) (resolution.Input, bool) {
	in.Policy.Bounds = slices.Clone(in.Policy.Bounds)
	if r.Kind == LiftBound {
		in.Policy.Bounds = slices.DeleteFunc(in.Policy.Bounds,
			func(b resolution.Bound) bool { return b.Policy == name })
		return in, true
	}
	for i := range in.Policy.Bounds {
		if b := &in.Policy.Bounds[i]; b.Policy == name {
			r.to(fieldPin, &b.Pin)
			r.to(fieldRange, &b.Range)
			r.to(fieldCeiling, &b.Ceiling)
		}
	}
	return in, true
}

// without is a view that lacks a catalog.
type without struct {
	resolution.View

	catalog string // as CatalogKey.String writes it
}

// Catalogs implements resolution.View.
func (w without) Catalogs() []resolution.Catalog {
	return slices.DeleteFunc(slices.Clone(w.View.Catalogs()),
		func(c resolution.Catalog) bool { return c.Key.String() == w.catalog })
}
