package sources_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/sources"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// parse gives a command these flags.
func parse(t *testing.T, register func(*cobra.Command), args ...string) {
	t.Helper()
	c := &cobra.Command{Use: "x"}
	register(c)
	if err := c.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
}

// TestSource proves R-CAT-84 for flags: each kind of source can be said, and what is said passes the rules
// that the gateway applies.
func TestSource(t *testing.T) {
	t.Parallel()
	here, err := filepath.Abs("a")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		want model.CatalogSource
	}{
		{"--directory a", model.CatalogSource{Type: source.Directory, Path: here}},
		{"--directory /a --mode lenient", model.CatalogSource{Type: source.Directory, Path: "/a", Mode: "lenient"}},
		{"--archive /a.tar.zst", model.CatalogSource{Type: source.Archive, Path: "/a.tar.zst"}},
		{
			"--archive https://a.test/a.tgz --subdirectory configs",
			model.CatalogSource{Type: source.Archive, URL: "https://a.test/a.tgz", Subdirectory: "configs"},
		},
		{
			"--git git@git.test:a.git --reference v1 --secret key",
			model.CatalogSource{
				Type: source.Git, URL: "git@git.test:a.git", Reference: "v1",
				Secrets: []string{"key"},
			},
		},
		{
			"--image r.test/a:1 --prefetch --insecure --timeout 5m",
			model.CatalogSource{
				Type: source.Image, Image: "r.test/a:1", Prefetch: true, Insecure: true,
				Timeout: "5m",
			},
		},
		{
			"--image r.test/a:1 --template r.test/a:v{kube_minor_version}",
			model.CatalogSource{Type: source.Image, Image: "r.test/a:1", Template: "r.test/a:v{kube_minor_version}"},
		},
		{"--template r.test/a:v{kube_minor_version}", model.CatalogSource{
			Type: source.Image, Template: "r.test/a:v{kube_minor_version}",
		}},
		{"--layout /layout", model.CatalogSource{Type: source.Image, Path: "/layout"}},
		{"--grpc catalog.test:50051", model.CatalogSource{Type: source.GRPC, Address: "catalog.test:50051"}},
		{"--configmap olm/old --secret spoke", model.CatalogSource{
			Type: source.ConfigMap, ConfigMap: &model.CatalogConfigMap{Namespace: "olm", Name: "old"},
			Secrets: []string{"spoke"},
		}},
		{"--sqlite /index.db --poll 1h", model.CatalogSource{Type: source.SQLite, Path: "/index.db", Poll: "1h"}},
		{"--image r.test/a:1 --mirror r.test=m.test,r.test=n.test --mirrors-only", model.CatalogSource{
			Type: source.Image, Image: "r.test/a:1", Mirrors: []model.CatalogMirror{
				{Source: "r.test", Mirrors: []string{"m.test", "n.test"}, Never: true},
			},
		}},
	} {
		var f sources.Flags
		parse(t, f.Register, strings.Fields(c.args)...)
		got, err := f.Source()
		if err != nil || asJSON(t, got) != asJSON(t, c.want) {
			t.Errorf("%s: got %s %v", c.args, asJSON(t, got), err)
		}
		if wrong := source.Check(got.Type, got.Settings(f.Display())); len(wrong) > 0 {
			t.Errorf("%s: %v", c.args, wrong)
		}
	}
	for args, want := range map[string]string{
		"":                                   "exactly one source is needed",
		"--directory a --sqlite b":           "exactly one source is needed",
		"--configmap old":                    "namespace/name",
		"--image a/b --mirror x":             "prefix=mirror",
		"--image a/b --mirrors-only":         "needs --mirror",
		"--image a/b --mirror =m":            "prefix=mirror",
		"--layout /a --template b --image c": "exactly one source is needed",
	} {
		var f sources.Flags
		parse(t, f.Register, strings.Fields(args)...)
		if _, err := f.Source(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestSecret: each kind of credential, from files and standard input, in the form that libs/source names.
func TestSecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"docker.json": `{"auths": {}}`, "key": "KEY\n", "hosts": "HOSTS\n",
		"ca.pem": "PEM\n", "kubeconfig": "kind: Config\n", "large": strings.Repeat("x", 1<<20),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ args, in, kind, want string }{
		{"--docker-config docker.json", "", "dockerconfigjson", `{"auths":{}}`},
		{"--username bot --password-stdin", "pw\n", "basic", `{"password":"pw","username":"bot"}`},
		{"--token-stdin", "tok\r\n", "token", `{"token":"tok"}`},
		{"--ssh-key key --known-hosts hosts", "", "ssh", `{"knownHosts":"HOSTS\n","privateKey":"KEY\n"}`},
		{
			"--ssh-key key --known-hosts hosts --passphrase-stdin", "pp\n", "ssh",
			`{"knownHosts":"HOSTS\n","passphrase":"pp","privateKey":"KEY\n"}`,
		},
		{"--ca ca.pem", "", "ca", `{"certificates":"PEM\n"}`},
		{"--kubeconfig kubeconfig", "", "kubeconfig", `{"kubeconfig":"kind: Config\n"}`},
		{"", "", "", "exactly one credential is needed"},
		{"--username bot", "", "", "go together"},
		{"--password-stdin", "pw", "", "go together"},
		{"--ssh-key key", "", "", "go together"},
		{"--ca ca.pem --token-stdin", "t", "", "the flags name several"},
		{"--docker-config key", "", "", "is not JSON"},
		{"--ca missing", "", "", "no such file"},
		{"--ca large", "", "", "larger than"},
		{"--token-stdin", strings.Repeat("x", 1<<20), "", "larger than"},
	} {
		args := strings.Fields(c.args)
		for i, a := range args {
			if !strings.HasPrefix(a, "--") && a != "bot" {
				args[i] = filepath.Join(dir, a)
			}
		}
		var s sources.Secret
		parse(t, s.Register, args...)
		got, err := s.Value(strings.NewReader(c.in))
		switch {
		case c.kind == "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.args, err, c.want)
		case c.kind != "" && (err != nil || string(got.Kind) != c.kind || string(got.Value) != c.want):
			t.Errorf("%s: %s %s %v", c.args, got.Kind, got.Value, err)
		}
	}
}

// TestSignatureFlags: a signature policy can be said by flags, and half of one is refused.
func TestSignatureFlags(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key, root := write("cosign.pub", "PEM"), write("trusted_root.json", "{}")
	for args, want := range map[string]string{
		"":                       `null`,
		"--signature-key " + key: `{"keys":["PEM"]}`,
		"--signature-identity https://i.test=a@b.test --trusted-root " + root: `{"identities":[{"issuer":"https://i.test",` +
			`"subject":"a@b.test"}],"trustedRoot":"{}"}`,
		"--signature-identity ~i.*=~a.*=b --trusted-root " + root + " --signature-logs 0 --certificate-logs 2 " +
			"--signature-timestamps 1 --signature-predicate p:1,p:2 --match-repository --signature-repository r.test/*": `{` +
			`"identities":[{"issuerRegexp":"i.*","subjectRegexp":"a.*=b"}],"trustedRoot":"{}","logEntries":0,` +
			`"certificateLogs":2,"signedTimestamps":1,"predicateTypes":["p:1","p:2"],"matchRepository":true,` +
			`"repositories":["r.test/*"]}`,
		"--trusted-root " + root:              "error: --signature-key or --signature-identity",
		"--match-repository":                  "error: --signature-key or --signature-identity",
		"--signature-identity https://i.test": "error: want issuer=subject",
		"--signature-identity ~=a":            "error: want issuer=subject",
		"--signature-key " + dir + "/none":    "error: --signature-key",
	} {
		var f sources.Flags
		parse(t, f.Register, append([]string{"--image", "r.test/a:1"}, strings.Fields(args)...)...)
		s, err := f.Source()
		got, merr := json.Marshal(s.Signatures)
		if merr != nil {
			t.Fatal(merr)
		}
		if reason, is := strings.CutPrefix(want, "error: "); is {
			if err == nil || !strings.Contains(err.Error(), reason) {
				t.Errorf("%s: %v; want %s", args, err, reason)
			}
		} else if err != nil || string(got) != want {
			t.Errorf("%s: %s %v; want %s", args, got, err, want)
		}
	}
}
