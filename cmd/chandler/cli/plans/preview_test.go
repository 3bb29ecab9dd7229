package plans

import (
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/documents"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/libs/previewapi"
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

// TestPreviewOfFailuresAlone: a preview that leads to failures and nothing else is not offered to be applied (P19).
func TestPreviewOfFailuresAlone(t *testing.T) {
	t.Parallel()
	failing := func(news bool) []model.PreviewScope {
		return []model.PreviewScope{{Failures: []previewapi.PreviewFailure{{Component: "gauge", News: news}}}}
	}
	for name, c := range map[string]struct {
		items   []model.PreviewScope
		totals  previewapi.Totals
		offered bool
	}{
		"new failures alone":      {failing(true), previewapi.Totals{Failures: 1}, false},
		"new failures and a plan": {failing(true), previewapi.Totals{Failures: 1, Plans: 1}, true},
		"new failures instead of a plan": {
			failing(true), previewapi.Totals{Failures: 1, Superseded: 1}, true,
		},
		"what fails today": {failing(false), previewapi.Totals{Failures: 1}, true},
		"nothing":          {nil, previewapi.Totals{}, true},
	} {
		var out strings.Builder
		a := &command.Env{Streams: command.Streams{Out: &out, Err: &out}}
		p := model.Preview{ID: "id", Items: c.items, Totals: c.totals, Applicable: true, ExpiresAt: time.Unix(0, 0)}
		if err := showPreview(a, printer.Output{}, p); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "To apply it: chandler plan apply id"); got != c.offered ||
			got == strings.Contains(out.String(), "mend them first") {
			t.Errorf("%s: said %s", name, out.String())
		}
	}
}
