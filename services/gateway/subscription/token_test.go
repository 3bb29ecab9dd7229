package subscription_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

// TestCheckTokens proves R-TOK-1, R-TOK-2 and R-TOK-3.
func TestCheckTokens(t *testing.T) {
	t.Parallel()
	const (
		arn      = "arn:aws:iam::123456789012:role/gauge"
		audience = "//iam.googleapis.com/projects/1234/locations/global/workloadIdentityPools/fleet/providers/spokes"
		email    = "gauge@sea.iam.gserviceaccount.com"
	)
	cases := []struct {
		name     string
		env      map[string]string
		approval string
		want     string // "" is no error
	}{
		{"nothing", nil, "", ""},
		{"other variables", map[string]string{"LEVEL": "debug"}, "Automatic", ""},
		{"AWS", map[string]string{"ROLEARN": arn}, "Manual", ""},
		{"AWS by itself (R-TOK-2)", map[string]string{"ROLEARN": arn}, "", "approval must be Manual"},
		{"not an ARN", map[string]string{"ROLEARN": "gauge"}, "Manual", "ROLEARN does not have the form"},
		{"Azure", map[string]string{"CLIENTID": "c", "TENANTID": "t", "SUBSCRIPTIONID": "s"}, "Automatic", "approval must be Manual"},
		{"a CLIENTID of something else", map[string]string{"CLIENTID": "c"}, "Automatic", ""},
		{"GCP", map[string]string{"AUDIENCE": audience, "SERVICE_ACCOUNT_EMAIL": email}, "Manual", ""},
		{"GCP by halves (R-TOK-1)", map[string]string{"AUDIENCE": audience}, "Manual", "without SERVICE_ACCOUNT_EMAIL"},
		{"GCP malformed (R-TOK-3)", map[string]string{"AUDIENCE": "fleet", "SERVICE_ACCOUNT_EMAIL": email}, "Manual", "AUDIENCE does not have the form"},
		{"given as empty", map[string]string{"ROLEARN": ""}, "Automatic", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var env []map[string]string
			for n, v := range c.env {
				env = append(env, map[string]string{"name": n, "value": v})
			}
			config, err := json.Marshal(map[string]any{"env": env})
			if err != nil {
				t.Fatal(err)
			}
			err = subscription.CheckTokens(config, c.approval)
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
