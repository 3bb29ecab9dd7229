package app_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestWhatDoesNotOpenIsMarked: a body whose key is gone, or that is damaged, is left out of the answer about its thing,
// and the answer says so. The rest of it, the rest of a page and whatever names the thing are answered as ever. The log
// says it once for each body, and quotes none.
func TestWhatDoesNotOpenIsMarked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.stop()
	var log bytes.Buffer
	b.said = slog.NewTextHandler(&log, nil)
	b.url, b.stop = b.gateway(token)
	b.cluster("spoke")
	noted := model.Metadata{Annotations: map[string]string{"owner": "s3cret dock"}}
	for _, name := range []string{"fleet", "harbour"} {
		in := model.AddCatalog{Name: name, Source: model.CatalogSource{Type: "directory", Path: "/s3cret/" + name}}
		if name == "fleet" {
			in.Metadata = noted
		}
		must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs", in))
	}
	const groups = "/api/v1/clusters/spoke/namespaces/ops/operatorgroups"
	must[model.OperatorGroup](b, 201, b.do("POST", groups, model.CreateOperatorGroup{Name: "g", Metadata: noted}))
	sub := subscribe("tidegauge", "tidegauge")
	sub.Metadata, sub.Config = noted, json.RawMessage(`{"env": [{"name": "A", "value": "s3cret"}]}`)
	must[model.Subscription](b, 201, b.do("POST", subscriptions, sub))
	const policy = "/api/v1/approvalpolicies/production"
	must[model.ApprovalPolicy](b, 200, b.do("PUT", policy, model.SetApprovalPolicy{Metadata: noted}))
	const lost = "ffffffffffffffff"
	b.exec("admin", `update gateway.bodies set key_id = case kind when 'annotations' then key_id else '`+lost+`' end,
		body = case kind when 'annotations' then body || '\x00'::bytea else body end
		where commitment <> (select spec from `+b.text(`select place from eventlog.models
			where model = 'projection/gateway.catalogs/'`)+`.catalogs where name = 'harbour')`)

	marks := func(path string) []string {
		t.Helper()
		a := b.do("GET", path, nil)
		if strings.Contains(string(a.body), "s3cret dock") || strings.Contains(string(a.body), "s3cret/fleet") {
			t.Errorf("%s shows what does not open: %s", path, a.body)
		}
		got := must[struct{ Unreadable []model.Unreadable }](b, 200, a).Unreadable
		var out []string
		for _, u := range got {
			if u.Message == "" || (u.Rule == bodies.RuleKey) != (u.KeyID == lost) {
				t.Errorf("%s says %+v", path, u)
			}
			out = append(out, u.Part+" "+u.Rule)
		}
		return out
	}
	for path, want := range map[string][]string{
		"/api/v1/catalogs/fleet":     {"source " + bodies.RuleKey, "annotations " + bodies.RuleIntact},
		"/api/v1/catalogs/harbour":   nil,
		groups + "/g":                {"annotations " + bodies.RuleIntact},
		subscriptions + "/tidegauge": {"config " + bodies.RuleKey, "annotations " + bodies.RuleIntact},
		policy:                       {"annotations " + bodies.RuleIntact},
	} {
		if got := marks(path); !slices.Equal(got, want) {
			t.Errorf("%s is marked %q, want %q", path, got, want)
		}
	}
	page := must[struct{ Items []model.Catalog }](b, 200, b.do("GET", "/api/v1/catalogs", nil)).Items
	for _, c := range page {
		if (len(c.Unreadable) > 0) != (c.Name == "fleet") || (c.Source.Path == "") != (c.Name == "fleet") ||
			c.Source.Type != "directory" {
			t.Errorf("the list shows %+v", c)
		}
	}
	for _, path := range []string{
		"/api/v1/subscriptions", "/api/v1/operatorgroups", "/api/v1/approvalpolicies", "/api/v1/catalogsecrets",
		"/api/v1/packages",
	} {
		if a := b.do("GET", path, nil); a.status != 200 {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	// What is written again can be read.
	sub.Config = json.RawMessage(`{"env": []}`)
	must[model.Subscription](b, 200, b.do("PUT", subscriptions+"/tidegauge", map[string]any{
		"package": sub.Package, "catalog": sub.Catalog, "config": sub.Config, "annotations": noted.Annotations,
	}))
	again := must[model.Subscription](b, 200, b.do("GET", subscriptions+"/tidegauge", nil))
	if len(again.Unreadable) > 0 || again.Annotations["owner"] != "s3cret dock" {
		t.Errorf("written again, it is %+v", again)
	}
	b.stop()
	if n := strings.Count(log.String(), "a body does not open"); n != 6 || strings.Contains(log.String(), "s3cret") {
		t.Errorf("the log says of %d bodies that they do not open, want 6:\n%s", n, log.String())
	}
}
