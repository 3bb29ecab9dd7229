package e2e

import (
	"encoding/base64"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/test/stack"
)

// TestFaultsOfServices stops services for a while, and kills them again and again, while portals write. DESIGN D4, D8.
func TestFaultsOfServices(t *testing.T) {
	w := newWorld(t)
	faults := []fault{{name: "two of everything", do: (*world).twoOfEverything}}
	for _, name := range stack.Services {
		if name == "gateway" {
			continue // who asks a stopped gateway waits; the second one answers, below
		}
		faults = append(faults, fault{name: name + " is stopped while a second one works", do: func(w *world) {
			w.takenOver(name)
		}})
	}
	faults = append(faults,
		fault{name: "the installer is drained, and killed while a second one works", do: (*world).drainedAndKilled},
		fault{name: "the gateway is stopped while a second one works", do: (*world).otherGateway},
		fault{name: "each service is killed every two seconds", do: (*world).killedAgainAndAgain},
	)
	w.tried(faults)
}

// takenOver suspends a service for longer than its leases last. Another one does its work meanwhile; then both run, and
// the one that was suspended believes for a moment that nothing has happened.
func (w *world) takenOver(name string) {
	w.t.Helper()
	other := stack.Second(name)
	w.must(w.Launch(other))
	w.must(w.Stack.Ready(w.ctx, other))
	w.must(w.Suspend(name))
	begun := time.Now()
	ns, catalog := "over-"+name, "taken"
	if name == "catalog-indexer" {
		catalog = "indexed-by-the-second"
	}
	w.addedBefore(catalog)
	w.group(ns)
	w.subscribe(ns, subscription{Name: "light", Package: "lighthouse", Catalog: catalog})
	w.succeeded(ns, "lighthouse.v1.2.0")
	w.t.Logf("the second %s has installed an operator %s after the first was stopped", name,
		time.Since(begun).Round(time.Millisecond))
	w.pause(time.Until(begun.Add(lasting(90 * time.Second))))
	w.must(w.Continue(name))
	w.during(20 * time.Second)
	w.Kill(other)
}

// drainedAndKilled drains the replica of the installer that runs the executor, and kills the one that has taken over.
// The other one goes on each time; how long that takes is told.
func (w *world) drainedAndKilled() {
	w.t.Helper()
	const first = "installer"
	second := stack.Second(first)
	w.must(w.Launch(second))
	w.must(w.Stack.Ready(w.ctx, second))
	w.addedBefore("taken")
	runs := func() string { // the process with the executor
		var by string
		w.eventually("one replica runs the executor", func() (string, bool) {
			running := map[string]bool{}
			for name, r := range w.replicas() {
				running[name] = r.Live && r.Clusters == 1
			}
			by = map[bool]string{true: first, false: second}[running[first]]
			return fmt.Sprint(running), running[first] != running[second]
		})
		return by
	}
	other := map[string]string{first: second, second: first}
	installs := func(namespace string, since time.Time, what string) {
		w.group(namespace)
		w.subscribe(namespace, subscription{Name: "light", Package: "lighthouse", Catalog: "taken"})
		w.succeeded(namespace, "lighthouse.v1.2.0")
		w.t.Logf("%s: the other replica has installed an operator after %s", what,
			time.Since(since).Round(time.Millisecond))
	}
	drained := runs()
	begun := time.Now()
	w.drain(drained, true)
	w.eventually("the other replica runs the executor", func() (string, bool) {
		all := w.replicas()
		return fmt.Sprint(all), all[drained].Clusters == 0 && all[other[drained]].Clusters == 1
	})
	installs("drained-installer", begun, "drained")
	killed := other[drained]
	begun = time.Now()
	w.drain(drained, false)
	w.Kill(killed) // before the cluster could go back
	installs("killed-installer", begun, "killed")
	if killed == first {
		w.must(w.Launch(first))
		w.must(w.Stack.Ready(w.ctx, first))
		w.Kill(second)
	}
}

// replica is a replica of the installer as the API shows it.
type replica struct {
	Name     string
	Live     bool
	Clusters int
}

// replicas are those of the two processes, by the name of the process.
func (w *world) replicas() map[string]replica {
	w.t.Helper()
	var list struct{ Items []replica }
	// A client of its own: replicas have no position in the log to wait for.
	w.must(stack.NewClient(w.Stack.URL(), w.Client.Token).Get(w.ctx, "/api/v1/replicas", &list))
	all := map[string]replica{}
	for _, r := range list.Items {
		for _, process := range []string{"installer", stack.Second("installer")} {
			if strings.HasSuffix(r.Name, "/"+w.OpsAddress(process)) {
				all[process] = r
			}
		}
	}
	return all
}

func (w *world) drain(process string, draining bool) {
	w.t.Helper()
	body := map[string]any{"replica": w.replicas()[process].Name, "draining": draining}
	w.must(w.Post(w.ctx, "/api/v1/replicas/drain", body, nil))
}

// addedBefore adds a catalog unless it is there.
func (w *world) addedBefore(name string) {
	w.t.Helper()
	var c struct{ State string }
	if w.Get(w.ctx, "/api/v1/catalogs/"+name, &c) != nil {
		w.addCatalog(name, example(w.t))
	}
}

// otherGateway suspends the gateway; what another one acknowledges holds.
func (w *world) otherGateway() {
	w.t.Helper()
	other := stack.Second("gateway")
	w.must(w.Launch(other))
	w.must(w.Stack.Ready(w.ctx, other))
	w.must(w.Suspend("gateway"))
	second := *w
	second.Client = stack.NewClient(w.SecondURL(), w.Client.Token)
	second.addedBefore("taken")
	second.group("over-gateway")
	second.subscribe("over-gateway", subscription{Name: "light", Package: "lighthouse", Catalog: "taken"})
	// Reads that wait for a position may be refused as long as the stopped gateway holds a read model.
	second.eventually("the operator is Succeeded", func() (string, bool) {
		var list struct{ Items []operator }
		err := second.Get(w.ctx, "/api/v1/operators?cluster="+spoke+"&namespace=over-gateway", &list)
		return fmt.Sprint(err, list.Items), err == nil && len(list.Items) == 1 && list.Items[0].Phase == "Succeeded"
	})
	w.during(60 * time.Second)
	w.must(w.Continue("gateway"))
	w.during(10 * time.Second)
	w.Kill(other)
	w.succeeded("over-gateway", "lighthouse.v1.2.0")
}

// twoOfEverything runs a second process of each service for a while.
func (w *world) twoOfEverything() {
	w.t.Helper()
	for _, name := range stack.Services {
		w.must(w.Launch(stack.Second(name)))
	}
	for _, name := range stack.Services {
		w.must(w.Stack.Ready(w.ctx, stack.Second(name)))
	}
	w.during(60 * time.Second)
	for _, name := range stack.Services {
		w.Kill(stack.Second(name))
	}
}

// killedAgainAndAgain gives no service more than two seconds.
func (w *world) killedAgainAndAgain() {
	w.t.Helper()
	w.repeatedly(time.Minute, 2*time.Second, func() {
		for _, name := range stack.Services {
			w.restart(name)
		}
	})
}

// TestServicesSayWhatIsWrong starts each service with a setting that is missing or wrong: it ends, or waits, with one
// sentence that names the setting or what is away.
func TestServicesSayWhatIsWrong(t *testing.T) {
	w := newStack(t)
	for _, c := range []struct {
		name, service, setting, value, says string
	}{
		{"no database", "resolver", "CHANDLER_DATABASE_URL", "", "CHANDLER_DATABASE_URL"},
		{"database URL is no URL", "resolver", "CHANDLER_DATABASE_URL", "postgres://%zz", "CHANDLER_DATABASE_URL"},
		{"NATS URL is no URL", "resolver", "CHANDLER_NATS_URL", "nats://%zz", "CHANDLER_NATS_URL"},
		{"grant key is no key", "installer", "CHANDLER_GRANT_KEY", "short", "CHANDLER_GRANT_KEY"},
		{"no grant key", "installer", "CHANDLER_GRANT_KEY", "", "CHANDLER_GRANT_KEY"},
		{
			"grant key of an agent that is not named", "installer", "CHANDLER_GRANT_KEY",
			"ssh-agent:" + base64.StdEncoding.EncodeToString(make([]byte, 32)), "CHANDLER_GRANT_AGENT",
		},
		{
			"identity is no identity", "installer", "CHANDLER_CREDENTIALS_IDENTITY", "AGE-SECRET-KEY-1X",
			"CHANDLER_CREDENTIALS_IDENTITY",
		},
		{
			"recipient is no recipient", "gateway", "CHANDLER_CREDENTIALS_RECIPIENT", "age1x",
			"CHANDLER_CREDENTIALS_RECIPIENT",
		},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			said, err := w.startedWith(c.service, c.setting, c.value)
			if err == nil {
				t.Fatalf("%s runs without a usable %s", c.service, c.setting)
			}
			lines := strings.Split(strings.TrimSpace(said), "\n")
			if last := lines[len(lines)-1]; !strings.Contains(last, c.says) || len(lines) > 3 {
				t.Errorf("%s says in %d lines, and does not name %s in the last:\n%s", c.service, len(lines), c.says,
					said)
			}
			for _, secret := range []string{w.Client.Token, "AGE-SECRET-KEY-1X"} {
				if strings.Contains(said, secret) {
					t.Errorf("%s says a secret", c.service)
				}
			}
		})
	}
}

// startLimit is how long a service may take to refuse its settings.
const startLimit = 30 * time.Second

// startedWith starts a second process of a service with one setting changed, and returns what it says until it ends.
func (w *world) startedWith(service, setting, value string) (said string, err error) {
	w.t.Helper()
	path, env := w.Command(stack.Second(service))
	cmd := exec.CommandContext(w.ctx, "timeout", fmt.Sprint(startLimit.Seconds()), path)
	for _, v := range env {
		if !strings.HasPrefix(v, setting+"=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	if value != "" {
		cmd.Env = append(cmd.Env, setting+"="+value)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
