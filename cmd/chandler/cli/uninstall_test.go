package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/namelookup"
)

// uninstalling is a gateway with operators that shows a plan and notes what it is asked to delete.
func uninstalling(t *testing.T, p model.RemovalPlan, operators ...model.Operator) (url string, deleted *[]string) {
	t.Helper()
	deleted = &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any = map[string]any{"items": operators}
		if _, name, ok := strings.Cut(r.URL.Path, "/named/"); ok {
			world := namelookup.Namespace{Cluster: "east-1", Namespace: "ports"}
			for _, o := range operators {
				world.Operators = append(world.Operators, namelookup.Operator{Name: o.Name, Package: o.Package})
			}
			found, err := world.Find(namelookup.KindOperator, name)
			if answer = (model.Named{Name: found, Package: "tidegauge"}); err != nil {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusConflict)
				answer = map[string]string{"title": "Conflict", "detail": err.Error()}
			}
		}
		if r.Method == http.MethodDelete {
			*deleted = append(*deleted, strings.TrimPrefix(r.URL.RequestURI(), "/api/v1/clusters/"))
			answer = p
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, deleted
}

func removalPlan() model.RemovalPlan {
	crd := model.Object{Kind: "CustomResourceDefinition", Name: "gauges.example.com"}
	return model.RemovalPlan{
		CSV: "tidegauge.v1", Digest: "sha256:1", Subscriptions: []string{"tides"},
		Needed: []string{"coast/harbor.v1", "ports/buoy.v1"},
		Requires: []model.RemovalDependant{{
			Operator: "ports/buoy.v1",
			Requires: []string{"of package tidegauge in range >=1.0.0"},
		}},
		Next: &model.PreviewScope{Plans: []model.PreviewPlan{{Approval: "Automatic", Bundles: []model.PlannedBundle{{
			CSV: "tidegauge.v1", Package: "tidegauge", Reason: "RequiredPackage", RequiredBy: "buoy.v1",
		}}}}},
		Steps: []model.RemovalStep{
			{Action: protocol.RemovalCustomResources, Objects: []model.Object{crd}},
			{Action: protocol.RemovalConversion, Objects: []model.Object{
				{Kind: "CustomResourceDefinition", Name: "buoys.example.com"},
			}},
			{Action: protocol.RemovalObjects, Objects: []model.Object{
				{Kind: "Deployment", Namespace: "ports", Name: "gauge"},
			}},
			{Action: protocol.RemovalCRDs, Objects: []model.Object{crd}},
		},
		Stays: []model.Leftover{
			{
				Object: model.Object{Kind: "CustomResourceDefinition", Name: "buoys.example.com"},
				Reason: protocol.LeftOtherOwners, Owners: []string{"coast/buoys.v2"},
			},
			{
				Object: model.Object{Kind: "CustomResourceDefinition", Name: "tides.example.com"},
				Reason: protocol.LeftNotOurs,
			},
		},
		Losses: []model.Loss{{CRD: "gauges.example.com", Objects: 3, Sample: []string{"ports/north", "ports/south"}}},
	}
}

const inTheWayOfIt = "3 custom resources would be lost; coast/harbor.v1, ports/buoy.v1 would lose what they depend " +
	"on; tidegauge.v1 would be planned again immediately"

const shownRemoval = `Removing tidegauge.v1 from namespace ports of cluster east-1, in this order:
  - subscription tides is deleted
  - all objects of gauges.example.com (3: ports/north, ports/south, …)
  - conversion by the operator's webhook: CustomResourceDefinition buoys.example.com
  - Deployment ports/gauge
  - CustomResourceDefinition gauges.example.com

Not removed:
  - CustomResourceDefinition buoys.example.com: also installed by coast/buoys.v2
  - CustomResourceDefinition tides.example.com: not written by Chandler

Operators that depend on it:
  - coast/harbor.v1: it uses one of its APIs
  - ports/buoy.v1: it requires an operator of package tidegauge in range >=1.0.0

What would happen next:
  - a plan is proposed (Automatic), tidegauge.v1: package required by buoy.v1
`

// TestUninstall is R-UNI-3 and P14: what is done is shown first, costs are agreed to by a word, and what is asked for
// is what was shown.
func TestUninstall(t *testing.T) {
	t.Parallel()
	cheap := model.RemovalPlan{CSV: "tidegauge.v1", Digest: "sha256:2"}
	installed := []model.Operator{{Cluster: "east-1", Namespace: "ports", Name: "tidegauge.v1", Package: "tidegauge"}}
	twice := append(slices.Clone(installed), model.Operator{
		Cluster: "east-1", Namespace: "ports", Name: "tidegauge.v2",
		Package: "tidegauge",
	})
	const path = "east-1/namespaces/ports/operators/tidegauge.v1?"
	for name, c := range map[string]struct {
		plan      model.RemovalPlan
		operators []model.Operator
		args      string
		out, err  string
		deleted   string
		typed     string // on a terminal
	}{
		"dry run": {
			removalPlan(), installed, "tidegauge --dry-run --delete-crds", shownRemoval, "",
			path + "crds=%2A&dryRun=true", "",
		},
		"costs without a word": {
			removalPlan(), installed, "tidegauge.v1 --crd gauges.example.com", shownRemoval,
			inTheWayOfIt + ": use --yes to go on", path + "crds=gauges.example.com&dryRun=true", "",
		},
		"costs with a word": {
			removalPlan(), installed, "tidegauge --delete-crds --yes",
			shownRemoval + "operator/east-1/ports/tidegauge.v1 is being removed\n", "", path + "crds=%2A&dryRun=true " +
				path + "crds=gauges.example.com&plan=sha256%3A1&subscriptions=delete", "",
		},
		"no costs": {
			cheap, installed, "tidegauge",
			"Removing tidegauge.v1 from namespace ports of cluster east-1, in this " +
				"order:\noperator/east-1/ports/tidegauge.v1 is being removed\n", "", path + "dryRun=true " + path +
				"plan=sha256%3A2&subscriptions=delete", "",
		},
		"for programs": {
			cheap, installed, "tidegauge --dry-run -o json", "{\n", "", path + "dryRun=true",
			"",
		},
		"not installed": {cheap, nil, "tidegauge", "", `tidegauge`, "", ""},
		"asked, and yes": {
			removalPlan(), installed, "tidegauge",
			shownRemoval + "operator/east-1/ports/tidegauge.v1 is being removed\n", strings.ToUpper(inTheWayOfIt[:1]) +
				inTheWayOfIt[1:] + ".\nRemove tidegauge.v1? [y/N] ", path + "dryRun=true " + path +
				"crds=gauges.example.com&plan=sha256%3A1&subscriptions=delete", "y\n",
		},
		"asked, and no": {
			cheap, installed, "tidegauge", "Removing",
			"Remove tidegauge.v1? [y/N] error: nothing was done", path + "dryRun=true", "no\n",
		},
		"asked, and gone": {
			cheap, installed, "tidegauge", "Removing", "nothing was done", path + "dryRun=true",
			"\x04",
		},
		"not asked": {cheap, installed, "tidegauge --yes", "Removing", "", path + "dryRun=true " + path +
			"plan=sha256%3A2&subscriptions=delete", "n\n"},
		"a package that is twice": {
			cheap, twice, "tidegauge", "",
			"\"tidegauge\" may be each of operator tidegauge.v1, tidegauge.v2 in namespace", "", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, deleted := uninstalling(t, c.plan, c.operators...)
			var out, errOut strings.Builder
			s := command.Streams{
				In: strings.NewReader(c.typed), Terminal: c.typed != "", Out: &out, Err: &errOut,
				Env: func(string) (string, bool) { return "", false },
			}
			status := Main(t.Context(), s, append(
				strings.Fields("--url "+url+" --token x uninstall --cluster east-1 -n ports"),
				strings.Fields(c.args)...))
			if refused := c.err != "" && !strings.HasPrefix(c.typed, "y"); (status != 0) != refused ||
				!strings.Contains(errOut.String(), c.err) {
				t.Errorf("status %d, %q, want %q", status, errOut.String(), c.err)
			}
			if !strings.HasPrefix(out.String(), c.out) || c.out == "" && out.Len() > 0 {
				t.Errorf("said\n%s\nwant\n%s", out.String(), c.out)
			}
			if got := strings.Join(*deleted, " "); got != c.deleted {
				t.Errorf("asked %q, want %q", got, c.deleted)
			}
		})
	}
}
