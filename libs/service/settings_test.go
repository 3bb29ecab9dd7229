package service_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/service"
)

type config struct {
	service.Config
	Token string
	Plain bool
	Many  int
}

func (c *config) Settings(s *service.Settings) {
	c.Config.Settings(s)
	s.Secret(&c.Token, "admin-token", "token of the administrator")
	s.Bool(&c.Plain, "plain", false, "without colours")
	s.Int(&c.Many, "many", 3, "how many")
}

func load(t *testing.T, args []string, vars map[string]string) (config, error) {
	t.Helper()
	var c config
	s := service.NewSettings("tester")
	c.Settings(s)
	err := s.Load(args, env(vars))
	return c, err
}

func env(vars map[string]string) service.LookupEnv {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadOrder(t *testing.T) {
	t.Parallel()
	file := write(t, "nats-url: from-file\nlog-level: from-file\nmany: 7\ndrain: 5s\n")
	c, err := load(t, []string{"--nats-url=from-flag", "--config", file}, map[string]string{
		"CHANDLER_NATS_URL": "from-env", "CHANDLER_LOG_LEVEL": "from-env", "CHANDLER_PLAIN": "true",
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.NATS.URL != "from-flag" || c.LogLevel != "from-env" || c.Many != 7 || c.Drain != 5*time.Second || !c.Plain ||
		c.LogFormat != "json" {
		t.Errorf("flag before environment before file before default does not hold: %+v", c)
	}
}

func TestFileOfSettingsFromEnvironment(t *testing.T) {
	t.Parallel()
	c, err := load(t, nil, map[string]string{"CHANDLER_CONFIG": write(t, "many: 9\n")})
	if err != nil || c.Many != 9 {
		t.Errorf("many = %d, %v", c.Many, err)
	}
}

func TestSecretFromFileAndNotFromFlag(t *testing.T) {
	t.Parallel()
	c, err := load(t, nil, map[string]string{"CHANDLER_ADMIN_TOKEN_FILE": write(t, "s3cret\n")})
	if err != nil || c.Token != "s3cret" {
		t.Errorf("token = %q, %v", c.Token, err)
	}
	if _, err := load(t, []string{"--admin-token=x"}, nil); err == nil {
		t.Error("a secret was taken from a flag, where other processes can read it")
	}
}

func TestLoadNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		vars map[string]string
		want []string
	}{
		"a flag that is not known": {args: []string{"--nope"}, want: []string{"nope"}},
		"a stray argument":         {args: []string{"stray"}, want: []string{"stray"}},
		"a number that is none": {
			vars: map[string]string{"CHANDLER_MANY": "few"},
			want: []string{"many", "CHANDLER_MANY", "few"},
		},
		"a duration without unit": {args: []string{"--drain=20"}, want: []string{"drain", "--drain"}},
		"a file that is not there": {
			args: []string{"--config=/nowhere/settings.yaml"},
			want: []string{"/nowhere/settings.yaml"},
		},
		"a file that is no mapping": {args: []string{"--config", write(t, "- a\n")}, want: []string{"mapping"}},
		"keys that nobody knows": {
			args: []string{"--config", write(t, "zeta: 1\nalpha: 2\n")},
			want: []string{"alpha, zeta"},
		},
		"a secret's file missing": {
			vars: map[string]string{"CHANDLER_DATABASE_URL_FILE": "/nowhere/url"},
			want: []string{"CHANDLER_DATABASE_URL_FILE"},
		},
		"a file beyond the limit": {
			args: []string{"--config", write(t, strings.Repeat("#", 1<<20+1))},
			want: []string{"limit"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, c.args, c.vars)
			if !errs.Is(err, errs.Invalid) {
				t.Fatalf("error %v, want one of kind invalid", err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not name %q", err, w)
				}
			}
		})
	}
}

func TestUsageListsEverySetting(t *testing.T) {
	t.Parallel()
	var c config
	s := service.NewSettings("tester")
	c.Settings(s)
	if err := s.Load([]string{"--help"}, env(nil)); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("--help gives %v", err)
	}
	var b bytes.Buffer
	if err := s.Usage(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--nats-url", "CHANDLER_ADMIN_TOKEN", "(no flag)", "(default 3)"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("usage does not say %q:\n%s", want, b.String())
		}
	}
}

func TestTheSameSettingTwiceIsAFaultOfTheProgram(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("declared twice without a panic")
		}
	}()
	s := service.NewSettings("tester")
	var v string
	s.String(&v, "name", "", "")
	s.String(&v, "name", "", "")
}
