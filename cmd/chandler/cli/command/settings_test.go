package command

import (
	"os"
	"path/filepath"
	"testing"
)

const contexts = `current-context: near
contexts:
- {name: near, url: "http://file", token: file, cluster: east, namespace: ports}
- {name: open}
- {name: far, url: "http://far", exec: {apiVersion: client.authentication.k8s.io/v1, command: give}}
`

func TestSettingsOrder(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	dir := filepath.Join(home, ".config", "chandler")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(contexts),
		0o600); err != nil {
		t.Fatal(err)
	}
	near := Settings{Context: "near", URL: "http://file", Token: "file", Cluster: "east", Namespace: "ports"}
	for name, c := range map[string]struct {
		app  Env
		env  map[string]string
		want Settings
	}{
		"nothing said": {want: Settings{URL: DefaultURL}},
		"the file":     {env: map[string]string{"HOME": home}, want: near},
		"another home": {env: map[string]string{
			"HOME":            "/nowhere",
			"XDG_CONFIG_HOME": filepath.Join(home, ".config"),
		}, want: near},
		"the token of one address is not sent to another": {
			env:  map[string]string{"HOME": home, "CHANDLER_URL": "http://env"},
			want: Settings{Context: "near", URL: "http://env", Cluster: "east", Namespace: "ports"},
		},
		"another context": {
			env:  map[string]string{"HOME": home, "CHANDLER_CONTEXT": "far", "CHANDLER_CLUSTER": "west"},
			want: Settings{Context: "far", URL: "http://far", Cluster: "west"},
		},
		"a context that is named goes before the environment": {
			app: Env{Context: "near"},
			env: map[string]string{
				"HOME": home, "CHANDLER_URL": "http://env", "CHANDLER_TOKEN": "env", "CHANDLER_CLUSTER": "west",
				"CHANDLER_NAMESPACE": "docks",
			},
			want: near,
		},
		"a named context without a token takes that of the environment": {
			app:  Env{Context: "open"},
			env:  map[string]string{"HOME": home, "CHANDLER_TOKEN": "env"},
			want: Settings{Context: "open", URL: DefaultURL, Token: "env"},
		},
		"the environment goes before the current context": {
			env:  map[string]string{"HOME": home, "CHANDLER_TOKEN": "env"},
			want: Settings{Context: "near", URL: "http://file", Token: "env", Cluster: "east", Namespace: "ports"},
		},
		"a named context's program goes before the environment": {
			app:  Env{Context: "far"},
			env:  map[string]string{"HOME": home, "CHANDLER_TOKEN": "env"},
			want: Settings{Context: "far", URL: "http://far"},
		},
		"flags first of all": {
			app:  Env{Context: "near", URL: "http://flag", Token: "flag"},
			env:  map[string]string{"HOME": home, "CHANDLER_URL": "http://env", "CHANDLER_CONTEXT": "far"},
			want: Settings{Context: "near", URL: "http://flag", Token: "flag", Cluster: "east", Namespace: "ports"},
		},
	} {
		c.app.Env = func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }
		got, err := c.app.Settings()
		if program := got.Exec != nil; program != (got.Context == "far") {
			t.Errorf("%s: the program is %+v", name, got.Exec)
		}
		got.Exec = nil
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
}
