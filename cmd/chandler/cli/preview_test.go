package cli

import (
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestPlanRefusesFlagsThatNothingComesOf: a flag that belongs to another change is named and not dropped, and the answer
// about a fleet is narrowed to one cluster or to none (P19).
func TestPlanRefusesFlagsThatNothingComesOf(t *testing.T) {
	t.Parallel()
	priority := int32(7)
	subscription := whatIf{spec: model.SubscriptionSpec{Package: "gauge", Catalog: "fleet"}, applyOptions: applyOptions{clusters: []string{"east", "west"}, namespace: "ports"}}
	catalog := whatIf{spec: model.SubscriptionSpec{Catalog: "fleet"}, disable: true}
	with := func(w whatIf, change func(*whatIf)) whatIf { change(&w); return w }
	for name, c := range map[string]struct {
		w    whatIf
		says string // "" where it is asked
	}{
		"a subscription on two clusters":  {subscription, ""},
		"a subscription and --disable":    {with(subscription, func(w *whatIf) { w.disable = true }), "--disable"},
		"a subscription and --enable":     {with(subscription, func(w *whatIf) { w.enable = true }), "--enable"},
		"a subscription and --priority":   {with(subscription, func(w *whatIf) { w.catalog.Priority = &priority }), "--priority"},
		"a subscription and --revision":   {with(subscription, func(w *whatIf) { w.catalog.Revision = "sha256:r" }), "--revision"},
		"a removal and --revision":        {whatIf{remove: []string{"policy/x"}, catalog: model.PreviewCatalog{Revision: "sha256:r"}}, "--revision"},
		"a catalog":                       {catalog, ""},
		"a catalog and --channel":         {with(catalog, func(w *whatIf) { w.spec.Channel = "stable" }), "--channel"},
		"a catalog on one cluster":        {with(catalog, func(w *whatIf) { w.clusters = []string{"east"} }), ""},
		"a catalog on two clusters":       {with(catalog, func(w *whatIf) { w.clusters = []string{"east", "west"} }), "one cluster"},
		"a policy's removal on two of it": {whatIf{remove: []string{"policy/x"}, applyOptions: applyOptions{clusters: []string{"east", "west"}}}, "one cluster"},
	} {
		in, err := (&app{}).suppose(c.w)
		switch {
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v", name, err)
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.says == "" && len(c.w.clusters) == 1 && in.Cluster != c.w.clusters[0]:
			t.Errorf("%s: asked about cluster %q", name, in.Cluster)
		}
	}
}

// TestHelpNamesEveryKind: who reads the help of get and delete finds approval policies, too (P20).
func TestHelpNamesEveryKind(t *testing.T) {
	t.Parallel()
	a := &app{}
	for _, r := range a.resources() {
		kind := r.names[1]
		if help := a.getCommand().Long; !strings.Contains(help, kind) {
			t.Errorf("get --help does not name %s", kind)
		}
		if help := a.deleteCommand().Long; r.remove != nil && !strings.Contains(help, kind) {
			t.Errorf("delete --help does not name %s", kind)
		}
	}
	if usage := a.shadowCommand().Flags().Lookup("cluster").Usage; strings.Contains(usage, "several") {
		t.Errorf("shadow takes one cluster, and says %q", usage)
	}
}
