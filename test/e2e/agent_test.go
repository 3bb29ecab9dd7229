package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"filippo.io/age"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/agentconfig"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
	"github.com/chandler-fleet/chandler/test/stack"
)

// TestAgent has the cluster served by an agent, which knows of the hub what NATS tells it: it installs, is followed by
// a second one when it dies and not before, looks after what is installed while the whole hub is away, and catches up.
func TestAgent(t *testing.T) { //nolint:tparallel // one stack is the subject
	t.Parallel()
	w := newStack(t)
	w.borrowCluster()
	w.addCatalog("harbour", example(t))
	w.must(w.Post(w.ctx, "/api/v1/clusters", map[string]any{"name": spoke, "access": "Agent"}, nil))
	agent := w.agentConfig()
	document, err := agent.Encode()
	w.must(err)
	launch := func(name string) {
		w.must(w.LaunchAgent(stack.Agent{
			Name: name, ClusterID: agent.ClusterID, Config: string(document),
			Kubeconfig: string(w.cluster.Kubeconfig()),
		}))
	}
	w.must(w.LetAgents(w.ctx, agent.Tenant, agent.ClusterID))
	w.readyAgain()
	launch("agent")
	t.Cleanup(func() {
		if t.Failed() {
			w.showAgents()
		}
	})
	w.state("Connected")
	w.must(w.Ready(w.ctx, "agent"))
	w.t.Logf("an agent at rest: %s", w.memory("agent"))

	t.Run("installs", func(t *testing.T) {
		w := w.in(t)
		w.group("near")
		w.subscribe("near", subscription{Name: "light", Package: "lighthouse", Catalog: "harbour"})
		w.succeeded("near", "lighthouse.v1.2.0")
		w.t.Logf("an agent with an operator: %s", w.memory("agent"))
	})
	t.Run("a second agent waits for the Lease", func(t *testing.T) {
		w := w.in(t)
		first := w.holderEpoch()
		launch("agent-2")
		w.must(w.Ready(w.ctx, "agent-2"))
		w.group("second")
		w.subscribe("second", subscription{Name: "light", Package: "lighthouse", Catalog: "harbour"})
		w.succeeded("second", "lighthouse.v1.2.0")
		if now := w.holderEpoch(); now != first {
			t.Errorf("the second agent took the cluster in epoch %d, the first has %d", now, first)
		}
		w.Kill("agent")
		w.eventually("the second agent holds the cluster", func() (string, bool) {
			now := w.holderEpoch()
			return fmt.Sprint(now), now > first
		})
		w.correctsDrift() // it has the bundles from now on
	})
	t.Run("goes on while the hub is away", func(t *testing.T) {
		w := w.in(t)
		for _, name := range append([]string{"nats-server"}, stack.Services...) {
			w.Kill(name)
		}
		w.must(w.Postgres().Stop())
		w.correctsDrift()
		w.must(w.StartPostgres(w.ctx))
		w.must(w.StartNATS(w.ctx))
		for _, name := range stack.Services {
			w.must(w.Launch(name))
		}
		w.readyAgain()
		w.group("later")
		w.subscribe("later", subscription{Name: "light", Package: "lighthouse", Catalog: "harbour"})
		w.succeeded("later", "lighthouse.v1.2.0")
	})
}

// correctsDrift deletes what an operator consists of, and waits until it is there again.
func (w *world) correctsDrift() {
	w.t.Helper()
	deployments := w.clientset().AppsV1().Deployments("near")
	list, err := deployments.List(w.ctx, metav1.ListOptions{})
	w.must(err)
	for _, d := range list.Items {
		w.must(deployments.Delete(w.ctx, d.Name, metav1.DeleteOptions{}))
	}
	w.eventually("the deployments are there again", func() (string, bool) {
		now, err := deployments.List(w.ctx, metav1.ListOptions{})
		w.must(err)
		return fmt.Sprint(len(now.Items)), len(list.Items) > 0 && len(now.Items) == len(list.Items)
	})
}

// agentConfig is what the agent of the cluster is to know, as the command line asks for it.
func (w *world) agentConfig() agentconfig.Config {
	w.t.Helper()
	own, err := age.GenerateX25519Identity()
	w.must(err)
	identity, err := seal.Of(own)
	w.must(err)
	var answer struct {
		ClusterID string
		Sealed    []byte
	}
	w.eventually("the installer knows the cluster", func() (string, bool) {
		err := w.Post(w.ctx, "/api/v1/clusters/"+spoke+"/agent-config",
			map[string]any{"recipient": identity.Recipient.String()}, &answer)
		return fmt.Sprint(err), err == nil
	})
	text, err := seal.Identities{identity}.Open(answer.Sealed, agentconfig.MaxBytes)
	w.must(err)
	config, err := agentconfig.Parse(text)
	w.must(err)
	if config.ClusterID != answer.ClusterID || config.Cluster != spoke || config.Tenant != events.DefaultTenant {
		w.t.Errorf("the agent is to serve %s, %s of %s", config.ClusterID, config.Cluster, config.Tenant)
	}
	var shown struct{ Access string }
	w.must(w.Get(w.ctx, "/api/v1/clusters/"+spoke, &shown))
	if shown.Access != "Agent" {
		w.t.Errorf("access is %q", shown.Access)
	}
	w.refused(w.Do(w.ctx, http.MethodPut, "/api/v1/clusters/"+spoke+"/credentials",
		map[string]any{"kubeconfig": string(w.cluster.Kubeconfig())}, nil), http.StatusConflict)
	return config
}

func (w *world) holderEpoch() int64 {
	w.t.Helper()
	var c struct{ HolderEpoch int64 }
	w.must(w.Get(w.ctx, "/api/v1/clusters/"+spoke, &c))
	return c.HolderEpoch
}

// memory is what a part has in memory, as the kernel counts it.
func (w *world) memory(name string) string {
	w.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.Processes()[name]))
	w.must(err)
	var out []string
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "VmRSS:") || strings.HasPrefix(line, "RssAnon:") {
			out = append(out, strings.Join(strings.Fields(line), " "))
		}
	}
	return strings.Join(out, ", ")
}

func (w *world) showAgents() {
	for _, name := range []string{"agent", "agent-2"} {
		if b, err := os.ReadFile(w.Log(name)); err == nil {
			w.t.Logf("end of the log of %s:\n%s", name, b[max(0, len(b)-6000):])
		}
	}
}
