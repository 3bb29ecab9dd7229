package plans

import (
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/documents"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestPreviewRefusesUselessFlags: a flag that belongs to another change is named and not dropped, and the answer
// about a fleet is narrowed to one cluster or to none (P19).
func TestPreviewRefusesUselessFlags(t *testing.T) {
	t.Parallel()
	priority := int32(7)
	subscription := previewOptions{
		spec:    model.SubscriptionSpec{Package: "gauge", Catalog: "fleet"},
		Options: documents.Options{Clusters: []string{"east", "west"}, Namespace: "ports"},
	}
	catalog := previewOptions{spec: model.SubscriptionSpec{Catalog: "fleet"}, disable: true}
	with := func(w previewOptions, change func(*previewOptions)) previewOptions { change(&w); return w }
	for name, c := range map[string]struct {
		w    previewOptions
		says string // "" where it is asked
	}{
		"a subscription on two clusters": {subscription, ""},
		"a subscription and --disable": {
			with(subscription, func(w *previewOptions) { w.disable = true }),
			"--disable",
		},
		"a subscription and --enable": {
			with(subscription, func(w *previewOptions) { w.enable = true }),
			"--enable",
		},
		"a subscription and --priority": {with(subscription,
			func(w *previewOptions) { w.catalog.Priority = &priority }), "--priority"},
		"a subscription and --revision": {with(subscription,
			func(w *previewOptions) { w.catalog.Revision = "sha256:r" }), "--revision"},
		"a removal and --revision": {previewOptions{
			remove:  []string{"policy/x"},
			catalog: model.PreviewCatalog{Revision: "sha256:r"},
		}, "--revision"},
		"a catalog": {catalog, ""},
		"a catalog and --channel": {
			with(catalog, func(w *previewOptions) { w.spec.Channel = "stable" }),
			"--channel",
		},
		"a catalog on one cluster": {
			with(catalog, func(w *previewOptions) { w.Clusters = []string{"east"} }),
			"",
		},
		"a catalog on two clusters": {with(catalog,
			func(w *previewOptions) { w.Clusters = []string{"east", "west"} }), "one cluster"},
		"a policy's removal on two of it": {previewOptions{
			remove:  []string{"policy/x"},
			Options: documents.Options{Clusters: []string{"east", "west"}},
		}, "one cluster"},
	} {
		in, err := previewRequest((&command.Env{}), c.w)
		switch {
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v", name, err)
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.says == "" && len(c.w.Clusters) == 1 && in.Cluster != c.w.Clusters[0]:
			t.Errorf("%s: asked about cluster %q", name, in.Cluster)
		}
	}
}
