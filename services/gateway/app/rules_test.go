package app_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/libs/rules"
)

// TestRulesAreExplained: a problem says where the rule that it names is explained, and there it is.
func TestRulesAreExplained(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := must[problem](b, 400, b.do("GET", "/api/v1/clusters?state=Sunk", nil))
	if len(p.Errors) != 1 || p.Errors[0].Help != "/api/v1/rules?id=one-of" {
		t.Fatalf("got %+v", p)
	}
	type list struct{ Items []rules.Rule }
	if l := must[list](b, 200, b.do("GET", p.Errors[0].Help, nil)); len(l.Items) != 1 || l.Items[0].ID != "one-of" ||
		l.Items[0].Demands == "" {
		t.Errorf("got %+v", l)
	}
	if l := must[list](b, 200, b.do("GET", "/api/v1/rules", nil)); len(l.Items) != len(rules.All()) {
		t.Errorf("%d rules are listed", len(l.Items))
	}
	must[problem](b, 404, b.do("GET", "/api/v1/rules?id=R-CAT-4321", nil))
}
