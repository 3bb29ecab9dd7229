package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/chandler-fleet/chandler/test/stack"
)

// TestAway takes away what Chandler needs, one thing after the other, while an operator is to be installed: it waits,
// says so, and goes on by itself.
func TestAway(t *testing.T) { //nolint:tparallel // one stack is the subject
	t.Parallel()
	w := newWorld(t)
	w.addCatalog("harbour", example(t))
	light := subscription{Name: "light", Package: "lighthouse", Catalog: "harbour"}

	t.Run("a cluster that is down keeps its plan", func(t *testing.T) {
		w := w.in(t)
		w.madeOf()
		w.must(w.cluster.Pause())
		w.group("down")
		w.subscribe("down", light)
		w.state("Unreachable")
		w.eventually("the plan waits", func() (string, bool) {
			plans := w.plans("down")
			return "", len(plans) == 1 && plans[0].Phase == "Installing"
		})
		w.must(w.cluster.Resume())
		w.succeeded("down", "lighthouse.v1.2.0")
		w.state("Connected")
	})
	t.Run("Postgres goes away and comes back", func(t *testing.T) {
		w := w.in(t)
		w.must(w.Postgres().Stop())
		w.refused(w.Get(w.ctx, "/api/v1/operators", nil), http.StatusServiceUnavailable)
		w.must(w.StartPostgres(w.ctx))
		w.readyAgain()
		w.group("postgres")
		w.subscribe("postgres", light)
		w.succeeded("postgres", "lighthouse.v1.2.0")
	})
	t.Run("NATS goes away and comes back", func(t *testing.T) {
		w := w.in(t)
		w.Kill("nats-server")
		w.group("nats")
		w.subscribe("nats", light)
		w.eventually("the plan is made without NATS", func() (string, bool) {
			return "", len(w.plans("nats")) == 1
		})
		w.must(w.StartNATS(w.ctx))
		w.succeeded("nats", "lighthouse.v1.2.0")
	})
	t.Run("services start before Postgres and NATS do", func(t *testing.T) {
		w := w.in(t)
		for _, name := range append([]string{"nats-server"}, stack.Services...) {
			w.Kill(name)
		}
		w.must(w.Postgres().Stop())
		for _, name := range stack.Services {
			w.must(w.Launch(name))
		}
		for _, name := range stack.Services {
			w.says(name, "waiting for")
		}
		w.must(w.StartPostgres(w.ctx))
		w.must(w.StartNATS(w.ctx))
		w.readyAgain()
		w.group("early")
		w.subscribe("early", light)
		w.succeeded("early", "lighthouse.v1.2.0")
	})
	t.Run("wrong credentials show, and can be replaced", func(t *testing.T) {
		w := w.in(t)
		wrong, err := clientcmd.Load(w.cluster.Kubeconfig())
		w.must(err)
		for _, user := range wrong.AuthInfos {
			user.ClientCertificateData, user.ClientKeyData, user.Token = nil, nil, "not-a-token"
		}
		kubeconfig, err := clientcmd.Write(*wrong)
		w.must(err)
		w.credentials(string(kubeconfig))
		w.state("Unauthorized")
		certified, err := w.cluster.CertificateKubeconfig() // all other tests have tokens
		w.must(err)
		w.credentials(string(certified))
		w.state("Connected")
	})
}

// TestCatalogTurnsBad proves that the last good revision stays when a catalog becomes invalid, that the finding names
// file, line and rule, and that nobody else is touched. DESIGN D3, R-CAT-35.
func TestCatalogTurnsBad(t *testing.T) {
	t.Parallel()
	w := newStack(t)
	dir := filepath.Join(t.TempDir(), "catalog")
	w.must(os.CopyFS(dir, os.DirFS(example(t))))
	w.addCatalog("harbour", dir)

	file := filepath.Join(dir, "lighthouse", "catalog.yaml")
	good, err := os.ReadFile(file)
	w.must(err)
	w.must(os.WriteFile(file, []byte(strings.Replace(string(good), ", replaces: lighthouse.v1.0.0", "", 1)), 0o600))
	w.must(w.Post(w.ctx, "/api/v1/catalogs/harbour/refresh", nil, nil))
	var bad struct {
		State, Rule, Revision string
		Packages              int
		Details               []struct {
			Rule, File, Message string
			Line                int
		}
	}
	w.eventually("the catalog is found bad", func() (string, bool) {
		w.must(w.Get(w.ctx, "/api/v1/catalogs/harbour", &bad))
		return bad.State, bad.State == "Failed"
	})
	if bad.Packages != 6 || bad.Revision == "" {
		t.Errorf("the revision before is gone: %+v", bad)
	}
	if len(bad.Details) == 0 || bad.Details[0].Rule == "" || bad.Details[0].Line == 0 ||
		!strings.Contains(bad.Details[0].File, "lighthouse/catalog.yaml") {
		t.Errorf("got findings %+v, want rule, file and line", bad.Details)
	}
	w.must(os.WriteFile(file, good, 0o600))
	w.must(w.Post(w.ctx, "/api/v1/catalogs/harbour/refresh", nil, nil))
	w.catalogReady("harbour")
}

// state waits until the cluster is shown in a state.
func (w *world) state(want string) {
	w.t.Helper()
	w.eventually("the cluster is "+want, func() (string, bool) {
		var c struct{ Connection, State, Reason, Message string }
		w.must(w.Get(w.ctx, "/api/v1/clusters/"+spoke, &c))
		return c.Connection + " " + c.State + " " + c.Reason + " " + c.Message, c.Connection == want
	})
}

func (w *world) credentials(kubeconfig string) {
	w.t.Helper()
	w.must(w.Do(w.ctx, http.MethodPut, "/api/v1/clusters/"+spoke+"/credentials",
		map[string]any{"kubeconfig": kubeconfig}, nil))
}

func (w *world) readyAgain() {
	w.t.Helper()
	for _, name := range stack.Services {
		w.must(w.Stack.Ready(w.ctx, name))
	}
}

// says waits until the log of a part holds a text.
func (w *world) says(name, text string) {
	w.t.Helper()
	w.eventually(name+" says "+text, func() (string, bool) {
		b, err := os.ReadFile(w.Log(name))
		w.must(err)
		return string(b[max(0, len(b)-500):]), strings.Contains(string(b), text)
	})
}

// madeOf awaits what the cluster is made of, with which its executor comes.
func (w *world) madeOf() {
	w.t.Helper()
	w.eventually("it is known what the cluster is made of", func() (string, bool) {
		var c struct {
			Facts struct {
				ClusterUID string
				APICount   int
			}
			APIs []string
		}
		w.must(w.Get(w.ctx, "/api/v1/clusters/"+spoke, &c))
		return fmt.Sprintf("%+v", c), c.Facts.ClusterUID != "" && c.Facts.APICount == len(c.APIs) &&
			slices.Contains(c.APIs, "apps/v1")
	})
}
