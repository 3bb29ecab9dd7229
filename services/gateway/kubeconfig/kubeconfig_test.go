package kubeconfig_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/kubeconfig"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
	"github.com/chandler-fleet/chandler/services/gateway/rule/ruletest"
)

const good = `apiVersion: v1
kind: Config
current-context: main
clusters: [{name: c, cluster: {server: "https://spoke.example.org:6443", certificate-authority-data: QQ==}}]
users: [{name: u, user: {token: s3cr3t-token}}]
contexts: [{name: main, context: {cluster: c, user: u}}]
`

func TestCheck(t *testing.T) {
	t.Parallel()
	replace := func(old, with string) string { return strings.Replace(good, old, with, 1) }
	user := func(with string) string { return replace("{token: s3cr3t-token}", with) }
	cases := []struct {
		name  string
		raw   string
		rules []string
	}{
		{"good", good, nil},
		{"no YAML", "{s3cr3t", []string{kubeconfig.RuleParses}},
		{"a list", "[s3cr3t]", []string{kubeconfig.RuleParses}},
		{"another kind", "kind: Secret", []string{kubeconfig.RuleParses}},
		{"empty", "", []string{kubeconfig.RuleContext}},
		{"no current context", replace("current-context: main\n", ""), []string{kubeconfig.RuleContext}},
		{
			"unknown context", replace("current-context: main", "current-context: s3cr3t"),
			[]string{kubeconfig.RuleContext},
		},
		{"no server", replace(`server: "https://spoke.example.org:6443", `, ""), []string{kubeconfig.RuleServer}},
		{"a server of another scheme", replace("https://", "file://"), []string{kubeconfig.RuleServer}},
		{"no user", replace("user: u}", "user: s3cr3t}"), []string{kubeconfig.RuleUser}},
		{"exec", user("{exec: {command: /bin/s3cr3t}}"), []string{kubeconfig.RuleNoExec}},
		{"auth provider", user("{auth-provider: {name: s3cr3t}}"), []string{kubeconfig.RuleNoAuthPlugin}},
		{
			"files", user("{client-certificate: /s3cr3t, client-key: /s3cr3t, tokenFile: /s3cr3t}"),
			[]string{kubeconfig.RuleNoFiles},
		},
		{
			"authority file", replace("certificate-authority-data: QQ==", "certificate-authority: /s3cr3t"),
			[]string{kubeconfig.RuleNoFiles},
		},
		{"exec in an entry that is not used", replace("users: [",
			"users: [{name: other, user: {exec: {command: x}}}, "), []string{kubeconfig.RuleNoExec}},
		{"too large", good + "#" + strings.Repeat("x", kubeconfig.MaxBytes), []string{rule.MaxLength}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := kubeconfig.Check("/kubeconfig", []byte(c.raw))
			var got []string
			for _, v := range ruletest.All(err) {
				got = append(got, v.Rule)
			}
			if diff := cmp.Diff(c.rules, got); diff != "" {
				t.Fatal(diff)
			}
			if err != nil && (!errs.Is(err, errs.Invalid) || strings.Contains(err.Error(), "s3cr3t")) {
				t.Errorf("an error of kind invalid that quotes nothing is wanted, got %v", err)
			}
		})
	}
}
