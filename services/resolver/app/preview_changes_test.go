package app_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/previewapi"
)

// randomChanges draws changes.
type randomChanges struct {
	*fleet

	random   *rand.Rand
	live     map[string]int // subscriptions; the number of lives
	versions map[string]int // heads of packages
	revision string
	shared   bool
}

var worldPackages = []string{"anchor", "buoy", "gauge", "tide"}

// packages makes the packages anew with their heads.
func (w *randomChanges) packages() []catalog.Package {
	var out []catalog.Package
	for i, name := range worldPackages {
		var list []version
		for v := w.versions[name]; v >= 0; v-- {
			x := version{v: fmt.Sprintf("1.%d.0", v), provides: []string{"K" + name}}
			if v > 0 {
				x.replaces = fmt.Sprintf("1.%d.0", v-1)
			}
			if i > 0 && v%3 == 1 {
				x.requires = []string{"K" + worldPackages[i-1]}
			}
			if v == 5 { // for one step, until the next head
				x.requires = []string{"Knobody"}
			}
			list = append(list, x)
		}
		out = append(out, w.pkg(name, list...))
	}
	return out
}

func (w *randomChanges) next() change {
	name := worldPackages[w.random.IntN(len(worldPackages))]
	spec := events.SubscriptionSpec{Package: name, Channel: "stable", Catalog: "fleet", Approval: installplan.Automatic}
	if w.random.IntN(2) == 0 {
		spec.Approval = installplan.Manual
	}
	subject := scoped(name)
	inEarnest := func(kind events.Kind, p events.Payload) func() {
		return func() { w.append(events.Gateway, kind, subject, subject, p) }
	}
	switch k := w.random.IntN(10); {
	case k < 4 && w.live[name]%2 == 0:
		w.live[name]++
		p := events.SubscriptionCreated{Cluster: cluster, Namespace: namespace, Name: name, Spec: spec}
		return change{
			"creating " + name,
			[]previewapi.Hypothesis{w.supposed(subject, w.live[name]/2+1, p)},
			inEarnest(events.KindSubscription, p),
		}
	case k < 3:
		p := events.SubscriptionChanged{Spec: spec}
		return change{
			"changing " + name,
			[]previewapi.Hypothesis{w.supposed(subject, 0, p)},
			inEarnest(events.KindSubscription, p),
		}
	case k == 4 && w.live[name]%2 == 1:
		w.live[name]++
		return change{
			"deleting " + name,
			[]previewapi.Hypothesis{w.supposed(subject, 0, events.SubscriptionDeleted{})},
			inEarnest(events.KindSubscription, events.SubscriptionDeleted{}),
		}
	case k == 5:
		w.shared = !w.shared
		p := events.OperatorGroupChanged{}
		if w.shared {
			p.Spec.Colocation = "shared"
		}
		subject = scoped("og")
		return change{
			"changing the group",
			[]previewapi.Hypothesis{w.supposed(subject, 0, p)},
			inEarnest(events.KindOperatorGroup, p),
		}
	case k == 6:
		subject = "approval/tide"
		p := events.ApprovalPolicySet{Name: "tide", Spec: events.ApprovalPolicySpec{
			PermissionGrowth: "Ignore", Approvers: w.random.IntN(3),
		}}
		p.Spec.Selector.Packages = []string{name}
		p.Spec.Rules = []events.ApprovalRule{{Change: "Any", Mode: spec.Approval}}
		p.Spec.Versions.Ceiling = fmt.Sprintf("1.%d.0", w.versions[name]+1)
		return change{
			"a policy on " + name,
			[]previewapi.Hypothesis{w.supposed(subject, 0, p)},
			inEarnest(events.KindPolicy, p),
		}
	default:
		w.versions[name]++
		list := w.packages()
		revision := w.publish("staging", w.revision, list...)
		w.quiet()
		before := w.revision
		w.revision = revision
		return change{
			"publishing " + name,
			[]previewapi.Hypothesis{w.supposed("fleet", 0, events.CatalogRevisionPublished{Revision: revision})},
			func() { w.publish("fleet", before, list...) },
		}
	}
}
