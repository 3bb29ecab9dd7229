package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/chandler-fleet/chandler/cmd/chandler/dev"
)

// TestMain also makes the scripts' command chandler: this test binary, called by that name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"chandler": func() { os.Exit(Run()) },
		"browse":   browse,
		// As kubectl calls a plugin.
		"kubectl-chandler": func() { os.Exit(Run()) },
	})
}

// stack is one chandler dev for all scripts of the process; each script has its own names in it.
var stack struct {
	sync.Once

	running dev.Running
	err     error
	stop    func() error
}

func startStack(defaults, providers string) {
	ctx, cancel := context.WithCancel(context.Background())
	ready := make(chan dev.Running, 1)
	done := make(chan error, 1)
	var log strings.Builder
	go func() {
		done <- dev.Run(ctx, dev.Options{
			Listen: "127.0.0.1:0", LogLevel: "error", Log: &log,
			Env:   map[string]string{"CHANDLER_DEFAULT_CATALOGS": defaults, "CHANDLER_OIDC_PROVIDERS": providers},
			Ready: func(r dev.Running) error { ready <- r; return nil },
		})
	}()
	stack.stop = func() error { cancel(); return <-done }
	select {
	case stack.running = <-ready:
	case err := <-done:
		cancel()
		stack.err = fmt.Errorf("chandler dev: %w\n%s", err, log.String())
		stack.stop = func() error { return nil }
	}
}

// The scripts run against all of Chandler in this process: what a user types and reads is what is tested.
func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Postgres")
	}
	defaults, err := filepath.Abs("testdata/defaults.yaml")
	if err != nil {
		t.Fatal(err)
	}
	providers, issuer := identityProvider(t)
	stack.Do(func() { startStack(defaults, providers) })
	if stack.err != nil {
		t.Fatal(stack.err)
	}
	t.Cleanup(func() {
		if err := stack.stop(); err != nil {
			t.Errorf("the ordered stop: %v", err)
		}
	})
	t.Run("libs/client", testGoClient)
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			// A script's name is a DNS label: its clusters and catalogs are its own.
			e.Setenv("SCRIPT", strings.ToLower(filepath.Base(filepath.Dir(e.WorkDir+"/"))))
			e.Setenv("CHANDLER_URL", stack.running.URL)
			e.Setenv("CHANDLER_TOKEN", stack.running.Token)
			e.Setenv("ISSUER", issuer)
			e.Setenv("ADMIN", stack.running.Token)
			e.Setenv("CHANDLER_DATABASE_URL", stack.running.DatabaseURL)
			e.Setenv("CHANDLER_NATS_URL", stack.running.NATSURL)
			e.Setenv("CHANDLER_NATS_NKEY_SEED", stack.running.NATSSeed)
			e.Setenv("CATALOG", filepath.Join(root, "examples", "catalog"))
			e.Setenv("HOME", e.WorkDir)
			return nil
		},
		// Tests that install large packages run by themselves.
		Condition: func(cond string) (bool, error) {
			if cond != "clients" {
				return false, fmt.Errorf("no condition has the name %q", cond)
			}
			return os.Getenv("CHANDLER_TEST_CLIENTS") == "all", nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"eventually": eventually, "status": status, "client": portalClient, "document": document, "see": see,
			"installed": installed,
		},
	})
}
