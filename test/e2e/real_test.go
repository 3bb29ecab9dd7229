package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
)

// realOperators are five operators of the certified v4.14 catalog, each in a namespace of its own. They were chosen for
// what they bring: optional objects, many CRDs, large CRDs, and a group that serves only its own namespace.
var realOperators = []struct {
	pkg   string
	own   bool // serves its own namespace only
	admin bool // binds cluster-admin: nothing of it is installed before an administrator allows it
}{
	{pkg: "stackable-commons-operator"},
	{pkg: "tigera-operator"},
	{pkg: "trident-operator"},
	{pkg: "scaleops-operator"},
	{pkg: "visionone-containersecurity", own: true, admin: true},
}

// TestRealCatalog indexes a whole published catalog with its manifests inline and brings five of its operators to
// Succeeded on a real API server. R-CAT-1, R-CAT-18, R-CSV-20.
func TestRealCatalog(t *testing.T) {
	t.Parallel()
	dir := catalogtest.Unpack(t, catalogtest.CertifiedFBC414, nil)
	w := newWorld(t)
	begin := time.Now()
	w.addCatalog("certified", dir)
	t.Logf("indexed in %s", time.Since(begin).Round(time.Millisecond))
	for _, o := range realOperators {
		if o.own {
			w.group(o.pkg, o.pkg)
		} else {
			w.globalGroup(o.pkg)
		}
		w.subscribe(o.pkg, subscription{Name: o.pkg, Package: o.pkg, Catalog: "certified"})
	}
	for _, o := range realOperators {
		if o.admin {
			w.allow(o.pkg)
		}
	}
	w.eventually("all are Succeeded", func() (string, bool) {
		var waiting []string
		for _, o := range realOperators {
			if detail, ok := w.healthy(o.pkg, func(op operator) bool { return op.Package == o.pkg }); !ok {
				waiting = append(waiting, detail)
			}
		}
		return strings.Join(waiting, "; "), len(waiting) == 0
	})
	t.Logf("all Succeeded %s after the catalog was added", time.Since(begin).Round(time.Millisecond))
}

// allow gives an administrator's word for the one plan of a namespace that needs it, by what the check of the plan
// shows.
func (w *world) allow(namespace string) {
	w.t.Helper()
	var found plan
	w.eventually("a plan needs an allowance", func() (string, bool) {
		for _, p := range w.plans(namespace) {
			if p.Blocked != nil && p.Blocked.Reason == "AllowanceNeeded" {
				found = p
				return "", true
			}
		}
		return "", false
	})
	var check struct {
		Allowances []struct{ Object, Finding string }
	}
	w.must(w.Get(w.ctx, "/api/v1/installplans/"+found.ID+"/check", &check))
	if len(check.Allowances) != 1 || len(w.operators(namespace)) > 0 {
		w.t.Fatalf("allowances %+v, installed %v", check.Allowances, w.operators(namespace))
	}
	w.must(w.Post(w.ctx, "/api/v1/installplans/"+found.ID+"/approve", map[string]any{
		"digest": found.Digest, "choices": []map[string]string{{
			"object": check.Allowances[0].Object, "choice": "Allow", "finding": check.Allowances[0].Finding,
			"reason": "its publisher is trusted with the cluster",
		}},
	}, nil))
}
