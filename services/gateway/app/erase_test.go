package app_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/app"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestErase: what a subscription or a catalog works with is not erased; after that it is, the log says so, and the
// events keep their commitments. A viewer may not, and nobody under a legal hold.
func TestErase(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	b.catalog("fleet")
	must[model.OperatorGroup](b, 201, b.do("POST", "/api/v1/clusters/spoke/namespaces/ops/operatorgroups",
		model.CreateOperatorGroup{Name: "g"}))
	in := subscribe("tidegauge", "tidegauge")
	in.Config = json.RawMessage(`{"env": [{"name": "A", "value": "s3cr3t"}]}`)
	must[model.Subscription](b, 201, b.do("POST", subscriptions, in))
	commitment := func(typ string, field func(raw []byte) string) string {
		t.Helper()
		page := must[struct{ Items []model.Event }](b, 200, b.do("GET", "/api/v1/events?type="+typ, nil))
		if len(page.Items) != 1 {
			t.Fatalf("%d events %s", len(page.Items), typ)
		}
		return field(page.Items[0].Data)
	}
	config := commitment("subscription.created.v1", func(raw []byte) string {
		var e events.SubscriptionCreated
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		return e.Spec.Config
	})
	spec := commitment("catalog.added.v1", func(raw []byte) string {
		var e events.CatalogAdded
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		return e.Spec
	})
	for _, id := range []string{config, spec} {
		p := must[problem](b, http.StatusConflict, b.do("DELETE", "/api/v1/bodies/"+id, nil))
		if len(p.Errors) != 1 || p.Errors[0].Rule != "body-in-use" {
			t.Errorf("got %v", p)
		}
	}
	viewer := must[model.NewToken](b, 201, b.do("POST", "/api/v1/tokens",
		model.AddToken{Name: "portal", Role: model.RoleViewer}))
	must[problem](b, http.StatusForbidden, b.as(viewer.Secret, "DELETE", "/api/v1/bodies/"+config, nil))
	must[problem](b, http.StatusBadRequest, b.do("DELETE", "/api/v1/bodies/c1:x", nil))

	in.Config = json.RawMessage(`{"env": []}`)
	must[model.Subscription](b, 200, b.do("PUT", subscriptions+"/tidegauge", in.SubscriptionSpec))
	must[model.Subscription](b, 200, b.do("GET", subscriptions+"/tidegauge", nil)) // the read model knows of it
	e := must[model.ErasedBody](b, 200, b.do("DELETE", "/api/v1/bodies/"+config, nil))
	if e.ID != config || e.Kind != "subscription-config" || e.ErasedBy != "token-admin" {
		t.Errorf("erased %+v", e)
	}
	if n := b.count(`select count(*) from gateway.bodies where commitment = '` + config + `'`); n != 0 {
		t.Error("the configuration is still there")
	}
	b.until(func() bool {
		return strings.Contains(string(b.do("GET", "/api/v1/events?type=access.body-erased.v1", nil).body), config)
	})
	b.stop()
	b.settings = func(c *app.Config) { c.Keep.LegalHold = true }
	b.url, b.stop = b.gateway(token)
	p := must[problem](b, http.StatusConflict, b.do("DELETE", "/api/v1/bodies/"+spec, nil))
	if len(p.Errors) != 1 || p.Errors[0].Rule != "legal-hold" {
		t.Errorf("got %v", p)
	}
}
