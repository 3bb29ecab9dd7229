package command

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSettingsOrder(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	dir := filepath.Join(home, ".config", "chandler")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("url: http://file\ntoken: file\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		app  Env
		env  map[string]string
		want Settings
	}{
		"nothing said": {want: Settings{URL: DefaultURL}},
		"the file":     {env: map[string]string{"HOME": home}, want: Settings{"http://file", "file"}},
		"another home": {env: map[string]string{
			"HOME":            "/nowhere",
			"XDG_CONFIG_HOME": filepath.Join(home, ".config"),
		}, want: Settings{"http://file", "file"}},
		"environment first": {
			env:  map[string]string{"HOME": home, "CHANDLER_URL": "http://env"},
			want: Settings{"http://env", "file"},
		},
		"flags first of all": {
			app: Env{URL: "http://flag", Token: "flag"},
			env: map[string]string{"CHANDLER_URL": "http://env"}, want: Settings{"http://flag", "flag"},
		},
	} {
		c.app.Env = func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }
		got, err := c.app.Settings()
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
}
