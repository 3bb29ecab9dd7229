package planreview

import (
	"cmp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog/compare"
	"github.com/chandler-fleet/chandler/libs/render"
)

// Place is where rights of an operator hold that are those of its namespaces.
type Place struct {
	Known      bool     // there is exactly one operator group
	All        bool     // it serves all namespaces
	Namespaces []string // that it serves now
}

// Everywhere reports whether a right holds in all namespaces: a global operator group lifts what a bundle asks for in
// its namespaces to the whole cluster.
func (p Place) Everywhere(r compare.Right) bool {
	return r.Scope == compare.ScopeCluster || !p.Known || p.All
}

// Right is one right of an operator in words.
type Right struct {
	compare.Right

	Words  string
	Reason string // why it deserves a second look; "" where there is no reason
	New    []string
}

// Demand is one demand in words.
type Demand struct {
	compare.Demand

	Reason string
	Mild   bool
	New    bool
}

// Rights are everything that a bundle's operator will be allowed to do and asks of the cluster.
type Rights struct {
	Rights      []Right
	Lost        []compare.Right // what the installed version could do, and this one cannot
	Demands     []Demand
	MoreDemands int
}

// WebhookOnPods is the danger of a webhook that the API server asks about pods: it sees what everybody runs, and can
// change or stop it. Package compare counts it among the webhooks.
const WebhookOnPods = "WebhookOnPods"

// Side is one version of a bundle: as it was published, and as it is rendered.
type Side struct {
	Content bundle.Content
	Objects []Object
}

// RightsOf reads what a bundle allows and asks for, what deserves a second look first. from is what is installed; nil
// where nothing is, and everything is new.
func RightsOf(to Side, from *Side, at Place) (Rights, error) {
	now, err := compare.Read(to.Content)
	if err != nil {
		return Rights{}, err
	}
	whole, err := compare.Parts(compare.Part{}, now)
	if err != nil {
		return Rights{}, err
	}
	step := whole
	var had []Demand
	if from != nil {
		had = podWebhooks(from.Objects)
		old, err := compare.Read(from.Content)
		if err != nil {
			return Rights{}, err
		}
		if step, err = compare.Parts(old, now); err != nil {
			return Rights{}, err
		}
	}
	out := Rights{Lost: step.Lost, MoreDemands: whole.MoreDemands}
	for _, r := range whole.Gained {
		out.Rights = append(out.Rights, Right{
			Right: r, Words: at.Words(r), Reason: Reason(r.Sensitive), New: newVerbs(r, step.Gained),
		})
	}
	for _, d := range whole.Demands {
		out.Demands = append(out.Demands, Demand{
			Demand: d, Reason: Reason(d.Danger), Mild: d.Mild(), New: slices.Contains(step.Demands, d),
		})
	}
	for _, d := range podWebhooks(to.Objects) {
		d.New = !slices.Contains(had, d)
		out.Demands = append(out.Demands, d)
	}
	slices.SortStableFunc(out.Rights, func(a, b Right) int {
		return cmp.Or(compare.First(a.Sensitive != "", b.Sensitive != ""),
			compare.First(len(a.New) > 0, len(b.New) > 0))
	})
	slices.SortStableFunc(out.Demands, func(a, b Demand) int {
		return cmp.Or(compare.First(!a.Mild, !b.Mild), compare.First(a.New, b.New))
	})
	return out, nil
}

// newVerbs are the verbs of a right that are gained.
func newVerbs(r compare.Right, gained []compare.Right) []string {
	for _, g := range gained {
		if g.Scope == r.Scope && g.Holder == r.Holder && g.Role == r.Role && g.Group == r.Group &&
			g.Resource == r.Resource && g.Name == r.Name && g.URL == r.URL {
			return g.Verbs
		}
	}
	return nil
}

// podWebhooks are the webhooks of rendered objects that are asked about pods.
func podWebhooks(objects []Object) []Demand {
	var out []Demand
	for _, o := range objects {
		if o.GVK != render.GVKMutatingWebhook && o.GVK != render.GVKValidatingWebhook {
			continue
		}
		var c admissionv1.MutatingWebhookConfiguration // a validating one has the same rules
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Body, &c); err != nil {
			out = append(out, Demand{
				Demand: compare.Demand{Danger: compare.Unknown, Object: o.GVK.Kind + " " + o.Name, Detail: err.Error()},
				Reason: Reason(compare.Unknown),
			})
			continue
		}
		for _, w := range c.Webhooks {
			if slices.ContainsFunc(w.Rules, aboutPods) {
				out = append(out, Demand{
					Demand: compare.Demand{Danger: WebhookOnPods, Object: o.GVK.Kind + " " + o.Name, Detail: w.Name},
					Reason: Reason(WebhookOnPods),
				})
			}
		}
	}
	return out
}

// aboutPods reports a rule that takes in pods or a part of them.
func aboutPods(r admissionv1.RuleWithOperations) bool {
	return (slices.Contains(r.APIGroups, "") || slices.Contains(r.APIGroups, "*")) &&
		slices.ContainsFunc(r.Resources, func(s string) bool {
			return s == "*" || s == "pods" || strings.HasPrefix(s, "pods/") || strings.HasPrefix(s, "*/")
		})
}
