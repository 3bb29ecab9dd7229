package e2e

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/test/stack"
)

// TestFaultsOfServices stops services for a while, and kills them again and again, while portals write. DESIGN D4, D8.
func TestFaultsOfServices(t *testing.T) { //nolint:tparallel // one stack is the subject
	t.Parallel()
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
	t.Run("each key is one intent, however often the gateway is killed", func(t *testing.T) { w.in(t).onceForEachKey() })
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

// wrong is a setting that is missing or wrong, and what a service says of it.
type wrong struct {
	name, setting, value, says string
	// waits: the service goes on trying, since what is wrong may be elsewhere. It says so in one line.
	waits bool
}

// wrongEverywhere is what may be wrong with any service.
func (w *world) wrongEverywhere(service string) []wrong {
	w.t.Helper()
	role := migrate.Role(events.Writer(service))
	other := "chandler_gateway"
	if service == "gateway" {
		other = "chandler_resolver"
	}
	strange, err := natsconn.NewSeed()
	w.must(err)
	const database, bus = "CHANDLER_DATABASE_URL", "CHANDLER_NATS_URL"
	return []wrong{
		{name: "no database", setting: database, says: database},
		{name: "database URL is no URL", setting: database, value: "postgres://%zz", says: database},
		{name: "database without schema", setting: database, value: w.Postgres().URL(role, w.empty), says: "migrate"},
		{name: "database that is none", setting: database, value: w.Postgres().URL(role, "no_such"), says: "no_such"},
		{
			name: "role that is none", setting: database, value: w.Postgres().URL("nobody_at_all", "postgres"),
			says: "nobody_at_all",
		},
		{name: "role of another service", setting: database, value: w.Postgres().RoleURL(other), says: database},
		{
			name: "database away", setting: database, value: "postgres://" + role + "@127.0.0.1:1/postgres",
			says: "127.0.0.1:1", waits: true,
		},
		{name: "NATS URL is no URL", setting: bus, value: "nats://%zz", says: bus},
		{name: "NATS away", setting: bus, value: "nats://127.0.0.1:1", says: "NATS", waits: true},
		{name: "no key for NATS", setting: "CHANDLER_NATS_NKEY_SEED", says: "NATS refused"},
		{name: "strange key for NATS", setting: "CHANDLER_NATS_NKEY_SEED", value: strange, says: "NATS refused"},
		{name: "broken key for NATS", setting: "CHANDLER_NATS_NKEY_SEED", value: "SUA", says: "nats-nkey-seed"},
		{name: "authority for NATS is none", setting: "CHANDLER_NATS_CA", value: "x", says: "nats-ca"},
		{
			name: "authority for NATS is missing", setting: "CHANDLER_NATS_CA_FILE", value: "/nowhere/ca",
			says: "CHANDLER_NATS_CA_FILE",
		},
		{name: "log level is none", setting: "CHANDLER_LOG_LEVEL", value: "loud", says: "loud"},
		{name: "address is none", setting: "CHANDLER_OPS_LISTEN", value: "nowhere", says: "nowhere"},
		{
			name: "address is taken", setting: "CHANDLER_OPS_LISTEN", value: w.OpsAddress(service),
			says: w.OpsAddress(service),
		},
		{name: "drain is no time", setting: "CHANDLER_DRAIN", value: "20", says: "CHANDLER_DRAIN"},
	}
}

// wrongOf is what may be wrong with one service.
var wrongOf = map[string][]wrong{
	"gateway": {
		{name: "no recipient", setting: "CHANDLER_CREDENTIALS_RECIPIENT", says: "CHANDLER_CREDENTIALS_RECIPIENT"},
		{
			name: "recipient is none", setting: "CHANDLER_CREDENTIALS_RECIPIENT", value: "age1x",
			says: "CHANDLER_CREDENTIALS_RECIPIENT",
		},
		{
			name: "catalog recipient is none", setting: "CHANDLER_CATALOG_CREDENTIALS_RECIPIENT", value: "age1x",
			says: "CHANDLER_CATALOG_CREDENTIALS_RECIPIENT",
		},
		{name: "hook key is none", setting: "CHANDLER_HOOK_KEY", value: "x", says: "CHANDLER_HOOK_KEY"},
		{name: "token is too short", setting: "CHANDLER_ADMIN_TOKEN", value: "shortest", says: "CHANDLER_ADMIN_TOKEN"},
		{name: "address of the API is none", setting: "CHANDLER_LISTEN", value: "nowhere", says: "nowhere"},
	},
	"catalog-indexer": {
		{
			name: "identity is none", setting: "CHANDLER_CATALOG_CREDENTIALS_IDENTITY", value: "AGE-SECRET-KEY-1X",
			says: "CHANDLER_CATALOG_CREDENTIALS_IDENTITY",
		},
		{name: "cache cannot be made", setting: "CHANDLER_CATALOG_CACHE", value: "/dev/null/x", says: "/dev/null"},
		{name: "retention is too short", setting: "CHANDLER_RETENTION", value: "24h", says: "retention"},
	},
	"resolver": {
		{name: "retention is too short", setting: "CHANDLER_RETENTION", value: "24h", says: "retention"},
	},
	"installer": {
		{name: "grant key is none", setting: "CHANDLER_GRANT_KEY", value: "shortest", says: "CHANDLER_GRANT_KEY"},
		{name: "no grant key", setting: "CHANDLER_GRANT_KEY", says: "CHANDLER_GRANT_KEY"},
		{
			name: "grant key of an agent that is not named", setting: "CHANDLER_GRANT_KEY",
			value: "ssh-agent:" + base64.StdEncoding.EncodeToString(make([]byte, 32)), says: "CHANDLER_GRANT_AGENT",
		},
		{
			name: "identity is none", setting: "CHANDLER_CREDENTIALS_IDENTITY", value: "AGE-SECRET-KEY-1X",
			says: "CHANDLER_CREDENTIALS_IDENTITY",
		},
		{name: "no identity", setting: "CHANDLER_CREDENTIALS_IDENTITY", says: "CHANDLER_CREDENTIALS_IDENTITY"},
		{name: "streams are none", setting: "CHANDLER_NATS_STREAMS", value: "{", says: "CHANDLER_NATS_STREAMS"},
	},
}

// TestServicesSayWhatIsWrong starts each service with a setting that is missing or wrong, or with what it needs missing
// elsewhere: it ends, or waits, with one sentence that names the setting or what is away, and quotes no secret.
func TestServicesSayWhatIsWrong(t *testing.T) { //nolint:tparallel // one stack is the subject
	t.Parallel()
	w := newStack(t)
	w.record, w.empty = w.database(), "empty_of_a_test"
	_, err := w.record.Exec(w.ctx, "create database "+w.empty)
	w.must(err)
	for _, service := range stack.Services {
		for _, c := range append(w.wrongEverywhere(service), wrongOf[service]...) {
			name := service + "/" + strings.ReplaceAll(c.name, " ", "-")
			t.Run(name, func(t *testing.T) { w.in(t).refusedBy(service, c) })
		}
	}
}

// refusedBy starts a service with what is wrong.
func (w *world) refusedBy(service string, c wrong) {
	w.t.Helper()
	said, err := w.startedWith(service, c)
	if !c.waits && err == nil {
		w.t.Fatalf("%s runs without a usable %s", service, c.setting)
	}
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, c.says) || len(lines) > 3 {
		w.t.Errorf("%s says in %d lines, and does not name %s in the last:\n%s", service, len(lines), c.says, said)
	}
	_, env := w.Command(service)
	for _, v := range append(env, c.setting+"="+c.value) {
		name, value, _ := strings.Cut(v, "=")
		if secretSetting.MatchString(name) && len(value) > 4 && strings.Contains(said, value) {
			w.t.Errorf("%s says the value of %s", service, name)
		}
	}
}

// secretSetting is the name of a setting that nobody may read in a log.
var secretSetting = regexp.MustCompile("^CHANDLER_.*(TOKEN|IDENTITY|KEY|SEED)$")

// How long a service may take to refuse its settings; and how long one that waits is watched after it has said so: what
// it tries again and again it does not say again and again.
const (
	startLimit = 30 * time.Second
	watched    = 2 * time.Second
)

// startedWith starts a second process of a service with one setting changed, and returns what it says until it ends, or
// for a while after the first line if it is to wait.
func (w *world) startedWith(service string, c wrong) (said string, err error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, startLimit)
	defer cancel()
	path, env := w.Command(stack.Second(service))
	cmd := exec.CommandContext(ctx, path)
	for _, v := range env {
		if !strings.HasPrefix(v, c.setting+"=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	if c.value != "" {
		cmd.Env = append(cmd.Env, c.setting+"="+c.value)
	}
	out, err := cmd.StderrPipe()
	w.must(err)
	w.must(cmd.Start())
	lines := bufio.NewScanner(out)
	var all strings.Builder
	end := time.AfterFunc(startLimit, func() { _ = cmd.Process.Kill() })
	defer end.Stop()
	for lines.Scan() {
		fmt.Fprintln(&all, lines.Text())
		if c.waits {
			c.waits = false
			end.Reset(watched)
		}
	}
	w.must(lines.Err())
	return all.String(), cmd.Wait()
}
