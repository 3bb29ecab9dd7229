package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestDescribeOperatorShowsDetails: what the cluster says of an operator is in the answer about it alone, and describe
// shows it (R-CSV-5, R-CSV-62).
func TestDescribeOperatorShowsDetails(t *testing.T) {
	t.Parallel()
	o := model.Operator{
		Cluster: "east-1", Namespace: "ports", Name: "tidegauge.v1", Package: "tidegauge",
		Version: "1.0.0", Phase: "Failed",
	}
	whole := o
	whole.Details = &model.OperatorDetails{
		Requirements: []model.Requirement{{
			Kind: "ServiceAccount", Name: "gauge", Status: "NotPresent",
			Message: "there is none",
		}},
		Drift: []protocol.Drift{{
			ObjectRef: protocol.ObjectRef{Kind: "Role", Namespace: "ports", Name: "gauge"},
			Missing:   true,
		}},
		Components: []protocol.Component{
			{
				ObjectRef: protocol.ObjectRef{Kind: "Deployment", Namespace: "ports", Name: "gauge-manager"},
				Status:    "Current",
			},
		},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any = map[string]any{"items": []any{}}
		switch r.URL.Path {
		case "/api/v1/clusters/east-1/namespaces/ports/named/tidegauge":
			answer = model.Named{Kind: "operator", Name: o.Name}
		case "/api/v1/operators":
			answer = map[string]any{"items": []model.Operator{o}}
		case "/api/v1/clusters/east-1/namespaces/ports/operators/tidegauge.v1":
			answer = whole
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	var output, wrong strings.Builder
	streams := command.Streams{
		In: strings.NewReader(""), Out: &output, Err: &wrong,
		Env: func(string) (string, bool) { return "", false }, Now: time.Now,
	}
	status := Main(t.Context(), streams, strings.Fields(
		"--url "+s.URL+" --token x describe operator east-1/ports/tidegauge"))
	out, errText := output.String(), wrong.String()
	for _, want := range []string{
		"Requirements that are not met", "there is none", "Drift", "is missing", "Components",
		"gauge-manager",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("status %d, error %q: %q is not in\n%s", status, errText, want, out)
		}
	}
}
