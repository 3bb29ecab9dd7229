package kubeconfig_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/kubeconfig"
)

const good = `apiVersion: v1
kind: Config
current-context: main
clusters: [{name: c, cluster: {server: "https://spoke.example.org:6443", certificate-authority-data: QQ==}}]
users: [{name: u, user: {token: s3cr3t-token}}]
contexts: [{name: main, context: {cluster: c, user: u}}]
`

func replace(old, with string) string { return strings.Replace(good, old, with, 1) }

func user(with string) string { return replace("{token: s3cr3t-token}", with) }

func cluster(with string) string { return replace("certificate-authority-data: QQ==", with) }

// Every fault is told by its rule and the path of the field, and none quotes a value. What one decoder takes for a key
// and another does not (Exec, TokenFile, a key that comes twice) is refused, so that what is checked is what is used.
func TestRead(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, raw, path, rule string }{
		{"good", good, "", ""},
		{"no YAML", "{s3cr3t", "", kubeconfig.RuleParses},
		{"a list", "[s3cr3t]", "", kubeconfig.RuleParses},
		{"another kind", replace("kind: Config", "kind: s3cr3t"), "kind", kubeconfig.RuleParses},
		{"another version", replace("apiVersion: v1", "apiVersion: s3cr3t"), "apiVersion", kubeconfig.RuleParses},
		{"empty", "", "current-context", kubeconfig.RuleContext},
		{"no current context", replace("current-context: main\n", ""), "current-context", kubeconfig.RuleContext},
		{
			"unknown context", replace("current-context: main", "current-context: s3cr3t"), "current-context",
			kubeconfig.RuleContext,
		},
		{
			"no server", replace(`server: "https://spoke.example.org:6443", `, ""), "clusters[0].cluster.server",
			kubeconfig.RuleServer,
		},
		{"another scheme", replace("https://", "file://"), "clusters[0].cluster.server", kubeconfig.RuleServer},
		{
			"a server with a user", replace("https://", "https://s3cr3t@"), "clusters[0].cluster.server",
			kubeconfig.RuleServer,
		},
		{
			"no cluster", replace("cluster: c, user", "cluster: s3cr3t, user"), "contexts[0].context.cluster",
			kubeconfig.RuleServer,
		},
		{"no user", replace("user: u}", "user: s3cr3t}"), "contexts[0].context.user", kubeconfig.RuleUser},
		{
			"exec", user("{exec: {command: /bin/s3cr3t, apiVersion: x, interactiveMode: Never}}"), "users[0].user.exec",
			kubeconfig.RuleNoExec,
		},
		{
			"auth provider", user("{auth-provider: {name: s3cr3t}}"), "users[0].user.auth-provider",
			kubeconfig.RuleNoAuthPlugin,
		},
		{"token file", user("{tokenFile: /s3cr3t}"), "users[0].user.tokenFile", kubeconfig.RuleNoFiles},
		{
			"certificate file", user("{client-certificate: /s3cr3t}"), "users[0].user.client-certificate",
			kubeconfig.RuleNoFiles,
		},
		{"key file", user("{client-key: /s3cr3t}"), "users[0].user.client-key", kubeconfig.RuleNoFiles},
		{
			"authority file", cluster("certificate-authority: /s3cr3t"), "clusters[0].cluster.certificate-authority",
			kubeconfig.RuleNoFiles,
		},
		{"impersonation", user("{token: s3cr3t, as: s3cr3t}"), "users[0].user.as", kubeconfig.RuleNoImpersonation},
		{
			"impersonated groups", user("{token: s3cr3t, as-groups: [s3cr3t]}"), "users[0].user.as",
			kubeconfig.RuleNoImpersonation,
		},
		{
			"exec in an entry that is not used",
			replace(
				"users: [",
				"users: [{name: other, user: {exec: {command: x, apiVersion: x, interactiveMode: Never}}}, ",
			),
			"users[0].user.exec", kubeconfig.RuleNoExec,
		},
		{"without TLS", replace("https://", "http://"), "clusters[0].cluster.server", kubeconfig.RuleTLS},
		{"a proxy", cluster(`proxy-url: "http://s3cr3t:1"`), "clusters[0].cluster.proxy-url", kubeconfig.RuleNoProxy},
		{
			"a proxy of another scheme", cluster(`proxy-url: "file:///s3cr3t"`), "clusters[0].cluster.proxy-url",
			kubeconfig.RuleNoProxy,
		},
		{
			"not verified", cluster("insecure-skip-tls-verify: true"), "clusters[0].cluster.insecure-skip-tls-verify",
			kubeconfig.RuleVerifies,
		},
		{"Exec", user("{token: x, Exec: {command: s3cr3t}}"), "users[0].user.Exec", kubeconfig.RuleKnownKeys},
		{
			"exec hidden behind Exec",
			user("{exec: {command: s3cr3t, apiVersion: x, interactiveMode: Never}, Exec: null}"), "users[0].user.Exec",
			kubeconfig.RuleKnownKeys,
		},
		{"TokenFile", user("{TokenFile: /s3cr3t}"), "users[0].user.TokenFile", kubeconfig.RuleKnownKeys},
		{
			"tokenfile emptied", user(`{tokenFile: /s3cr3t, tokenfile: ""}`), "users[0].user.tokenfile",
			kubeconfig.RuleKnownKeys,
		},
		{"Users", replace("users:", "Users:"), "Users", kubeconfig.RuleKnownKeys},
		{"Server", replace("{server:", "{Server:"), "clusters[0].cluster.Server", kubeconfig.RuleKnownKeys},
		{"an unknown key", user("{s3cr3t: x}"), "users[0].user", kubeconfig.RuleKnownKeys},
		{"an unknown key at the top", good + "s3cr3t: x\n", "", kubeconfig.RuleKnownKeys},
		{"a key twice", user("{token: s3cr3t, token: x}"), "", kubeconfig.RuleParses},
		{"a key twice in JSON", `{"kind": "Config", "kind": "Config"}`, "", kubeconfig.RuleParses},
		{
			"two users of a name", replace("users: [", "users: [{name: u, user: {token: s3cr3t}}, "), "users[1].name",
			kubeconfig.RuleUnique,
		},
		{"too large", good + "#" + strings.Repeat("x", kubeconfig.MaxBytes), "", kubeconfig.RuleMaxLength},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, faults := kubeconfig.Read([]byte(c.raw))
			found := c.rule == "" && len(faults) == 0
			for _, f := range faults {
				found = found || f.Path == c.path && f.Rule == c.rule
			}
			if !found {
				t.Errorf("faults %q, want one of rule %s at %s", faults, c.rule, c.path)
			}
			_, err := kubeconfig.Load([]byte(c.raw))
			kind := errs.Is(err, errs.Invalid) || errs.Is(err, errs.Forbidden)
			if err != nil && (!kind || strings.Contains(err.Error(), "s3cr3t")) {
				t.Errorf("an error of kind invalid or forbidden that quotes nothing is wanted, got %v", err)
			}
		})
	}
}

// A waiver allows one thing, and is told only where the kubeconfig needs it.
func TestWaivers(t *testing.T) {
	t.Parallel()
	open := map[kubeconfig.Waiver]string{
		kubeconfig.WaiveHTTP:       replace("https://", "http://"),
		kubeconfig.WaiveProxy:      cluster(`proxy-url: "socks5://p:1"`),
		kubeconfig.WaiveUnverified: cluster("insecure-skip-tls-verify: true"), "": good,
	}
	for need, raw := range open {
		for _, given := range kubeconfig.Waivers() {
			c, err := kubeconfig.Load([]byte(raw), given)
			if allowed := need == "" || need == given; (err == nil) != allowed {
				t.Errorf("what needs %q, with %q: %v", need, given, err)
			}
			if err == nil && (need != "" && !cmp.Equal(c.Waived, []kubeconfig.Waiver{need}) ||
				need == "" && len(c.Waived) > 0) {
				t.Errorf("what needs %q says that it needed %q", need, c.Waived)
			}
		}
	}
}

// What is stored has one context, nothing that was not understood, and is the same whenever it is written.
func TestCanonical(t *testing.T) {
	t.Parallel()
	c, err := kubeconfig.Load([]byte(replace("users: [", `preferences: {colors: true}
extensions: [{name: x, extension: {exec: {command: rm}}}]
users: [{name: other, user: {token: other}}, `)))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := c.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"kind":"Config","apiVersion":"v1","clusters":[{"name":"chandler","cluster":` +
		`{"server":"https://spoke.example.org:6443","certificate-authority-data":"QQ=="}}],` +
		`"users":[{"name":"chandler","user":{"token":"s3cr3t-token"}}],` +
		`"contexts":[{"name":"chandler","context":{"cluster":"chandler","user":"chandler"}}],` +
		`"current-context":"chandler"}`
	if string(raw) != want {
		t.Errorf("got %s", raw)
	}
	again, err := kubeconfig.Load(raw)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := again.Canonical(); err != nil || string(second) != want {
		t.Errorf("written again: %s, %v", second, err)
	}
	if s := fmt.Sprintf("%v %+v %#v", c, c, c); strings.Contains(s, "s3cr3t") {
		t.Errorf("printed: %s", s)
	}
}

// FuzzRead: whatever comes in, what is let through names no file, no program and no proxy, and is stable.
func FuzzRead(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(user("{exec: {command: x}, Exec: null}")))
	f.Add([]byte(user("&a {token: x, <<: *a}")))
	f.Add([]byte(`{"clusters":[{"cluster":{"server":"https://a","proxy-url":"http://b"}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := kubeconfig.Load(raw)
		if err != nil {
			return
		}
		first, err := c.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{
			`"exec":`, `"auth-provider":`, `"tokenFile":`, `"certificate-authority":`, `"client-key":`,
			`"client-certificate":`,
			`"proxy-url":`, `"insecure-skip-tls-verify":`, `"as":`, `"server":"http:`,
		} {
			if strings.Contains(string(first), key) {
				t.Errorf("%s in %s", key, first)
			}
		}
		again, err := kubeconfig.Load(first)
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		if second, err := again.Canonical(); err != nil || !bytes.Equal(second, first) {
			t.Errorf("%s became %s, %v", first, second, err)
		}
	})
}
