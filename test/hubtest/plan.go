package hubtest

import (
	"cmp"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/allowance"
	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
)

// grantedFor is how long the grants of plans hold.
const grantedFor = time.Hour

// Bundle is a bundle of a plan.
type Bundle struct {
	Content  bundle.Content
	Package  string // "" is the component
	Replaces string
	Reason   string          // why the plan brings it; Subscribed without one
	Config   json.RawMessage // of the subscription
	Allowed  bool            // an administrator allowed what it needs a word for
}

// Plan makes an approved plan of bundles, for the operator group that the namespace has now. It fails the test where
// a bundle cannot be rendered.
func (h *Hub) Plan(ns, component string, bundles ...Bundle) protocol.Plan {
	h.tb.Helper()
	s := h.Scope(ns)
	doc := installplan.Document{
		Namespace: ns, Component: component, Input: digest.Bytes([]byte(component)), Rendering: h.rendering.Newest(),
	}
	p := protocol.Plan{ID: uuid.NewString(), Component: component, Configs: map[string]json.RawMessage{}}
	p.Name = "install-" + p.ID[:5]
	var choices []protocol.Choice
	for _, b := range bundles {
		csv, err := b.Content.CSV()
		must(h.tb, err)
		objects, err := h.rendering.Render(doc.Rendering,
			render.Input{Content: b.Content, Namespace: ns, Config: b.Config})
		must(h.tb, err)
		if b.Allowed {
			choices = append(choices, allowed(h.tb, csv.Name, h.Store(b.Content), objects)...)
		}
		steps, err := stepsOf(objects)
		must(h.tb, err)
		doc.Steps = append(doc.Steps, steps...)
		doc.Bundles = append(doc.Bundles, events.PlannedBundle{
			CSV: csv.Name, Package: cmp.Or(b.Package, component), Version: csv.Spec.Version, Channel: "stable",
			Catalog: "test", Content: string(h.Store(b.Content)), Replaces: b.Replaces,
			Reason: cmp.Or(b.Reason, "Subscribed"),
		})
		if b.Config != nil {
			p.Configs[csv.Name], err = Configs(h.ClusterID).Seal(csv.Name, b.Config)
			must(h.tb, err)
		}
	}
	facts := installplan.BaseFacts{OperatorGroup: installplan.GroupFacts{
		Name: s.OperatorGroup.Name, Spec: s.OperatorGroup.Spec,
	}}
	var err error
	doc.Base, err = facts.Base()
	must(h.tb, err)
	d, err := doc.Digest()
	must(h.tb, err)
	p.Digest = string(d)
	p.Document, err = digest.Canonical(doc)
	must(h.tb, err)
	operators, err := protocol.Granted(doc.Bundles, p.Configs, doc.Rendering)
	must(h.tb, err)
	p.Grant, err = protocol.Grant{
		Plan: p.ID, Digest: p.Digest, Operators: operators, Cluster: h.ClusterID, Namespace: ns,
		Account: s.OperatorGroup.Spec.ServiceAccountName, Expires: time.Now().Add(grantedFor), Choices: choices,
	}.Sign(h.Key)
	must(h.tb, err)
	return p
}

// allowed is the word of an administrator for what a bundle needs one for, none for most.
func allowed(tb testing.TB, csv string, content digest.Digest, objects []render.Object) []protocol.Choice {
	tb.Helper()
	needed := allowance.Needed(objects)
	if len(needed) == 0 {
		return nil
	}
	finding, err := allowance.Finding(csv, string(content), needed)
	must(tb, err)
	return []protocol.Choice{{
		Object: protocol.Allowance{CSV: csv}.Object(), Choice: events.ChoiceAllow, Finding: finding,
		By: []string{"test"},
	}}
}

// Removal signs a request to uninstall.
func (h *Hub) Removal(ns string, r protocol.Removal) protocol.Removal {
	h.tb.Helper()
	r, err := r.Granted(h.ClusterID, ns, time.Now().Add(grantedFor), h.Key)
	must(h.tb, err)
	return r
}

// Objects renders a bundle for a namespace.
func Objects(tb testing.TB, ns string, b Bundle) []render.Object {
	tb.Helper()
	objects, err := render.Render(render.Input{Content: b.Content, Namespace: ns, Config: b.Config})
	must(tb, err)
	return objects
}

func stepsOf(objects []render.Object) ([]installplan.Step, error) {
	steps := make([]installplan.Step, 0, len(objects))
	for _, o := range objects {
		d, err := o.Digest()
		if err != nil {
			return nil, err
		}
		steps = append(steps, installplan.Step{
			Resolving: o.Resolving, Group: o.GVK.Group, Version: o.GVK.Version, Kind: o.GVK.Kind,
			Namespace: o.Namespace, Name: o.Name, Digest: d,
		})
	}
	return steps, nil
}
