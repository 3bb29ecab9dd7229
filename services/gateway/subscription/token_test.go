package subscription_test

import (
	"encoding/json"
	"slices"
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
		advised  bool   // to have it approved by a person
	}{
		{"nothing", nil, "", "", false},
		{"other variables", map[string]string{"LEVEL": "debug"}, "Automatic", "", false},
		{"AWS", map[string]string{"ROLEARN": arn}, "Manual", "", false},
		{"AWS by itself (R-TOK-2)", map[string]string{"ROLEARN": arn}, "", "", true},
		{"not an ARN", map[string]string{"ROLEARN": "gauge"}, "Manual", "ROLEARN does not have the form", false},
		{"Azure", map[string]string{"CLIENTID": "c", "TENANTID": "t", "SUBSCRIPTIONID": "s"}, "Automatic", "", true},
		{"a CLIENTID of something else", map[string]string{"CLIENTID": "c"}, "Automatic", "", false},
		{"GCP", map[string]string{"AUDIENCE": audience, "SERVICE_ACCOUNT_EMAIL": email}, "Manual", "", false},
		{
			"GCP by halves (R-TOK-1)",
			map[string]string{"AUDIENCE": audience},
			"Manual", "without SERVICE_ACCOUNT_EMAIL",
			false,
		},
		{
			"GCP malformed (R-TOK-3)",
			map[string]string{"AUDIENCE": "fleet", "SERVICE_ACCOUNT_EMAIL": email},
			"Manual",
			"AUDIENCE does not have the form", false,
		},
		{"given as empty", map[string]string{"ROLEARN": ""}, "Automatic", "", false},
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
			err = subscription.CheckTokens(config)
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			advice, err := subscription.AdviseApproval(config, c.approval)
			if err != nil || (advice != nil) != c.advised || advice != nil &&
				(advice.Rule != "R-TOK-2" || !strings.Contains(advice.Error(), "approval should be Manual")) {
				t.Errorf("advice %v, want %v; %v", advice, c.advised, err)
			}
		})
	}
}

// TestMissingTokens proves R-TOK-1: what a subscription lacks is named where the cluster gives tokens and the operator
// can use them, and nowhere else.
func TestMissingTokens(t *testing.T) {
	t.Parallel()
	const prefix = "features.operators.openshift.io/token-auth-"
	for _, c := range []struct {
		name, mode, annotation, value, config string
		want                                  []string
	}{
		{"AWS", "AWS", "aws", "true", "", []string{"ROLEARN"}},
		{"AWS, given", "AWS", "aws", "true", `{"env": [{"name": "ROLEARN", "value": "arn"}]}`, nil},
		{
			"AWS, from a Secret", "AWS", "aws", "true",
			`{"env": [{"name": "ROLEARN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}`, nil,
		},
		{"AWS, as empty", "AWS", "aws", "true", `{"env": [{"name": "ROLEARN", "value": ""}]}`, []string{"ROLEARN"}},
		{
			"Azure by halves", "Azure", "azure", "true", `{"env": [{"name": "TENANTID", "value": "t"}]}`,
			[]string{"CLIENTID", "SUBSCRIPTIONID"},
		},
		{"GCP", "GCP", "gcp", "true", `{}`, []string{"AUDIENCE", "SERVICE_ACCOUNT_EMAIL"}},
		{"for another cloud", "GCP", "aws", "true", "", nil},
		{"annotated against", "AWS", "aws", "false", "", nil},
		{"a cluster without tokens", "", "aws", "true", "", nil},
	} {
		got, err := subscription.MissingTokens(c.mode, map[string]string{prefix + c.annotation: c.value},
			json.RawMessage(c.config))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", c.name, got, err, c.want)
		}
	}
	if _, err := subscription.MissingTokens("AWS", map[string]string{prefix + "aws": "true"},
		json.RawMessage(`{"env": 1}`)); err == nil {
		t.Error("a configuration of another form is taken")
	}
}
