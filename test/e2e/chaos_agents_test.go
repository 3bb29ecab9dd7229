package e2e

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/tunneltest"
	"github.com/chandler-fleet/chandler/test/internal/chaos"
	"github.com/chandler-fleet/chandler/test/stack"
)

// TestFaultsOfAgents has a cluster served by an agent that has joined by a token, and harms what is between it and the
// hub in the middle of installs: the network is cut without a word in both directions, the agent and the services of
// the hub are killed with SIGKILL, and all reports come again, the last first. At the end is what an install without
// harm leaves: the same objects in the cluster, and the same events, each once. A run does a part of the harms; make
// chaos does each at each moment, among them steps of the plan in the cluster. DESIGN D4, D7, D8.
func TestFaultsOfAgents(t *testing.T) {
	t.Parallel()
	var led leading
	w := startStack(t, stack.Options{Operator: true, Env: led.env})
	at, err := url.Parse(w.NATSURL())
	w.must(err)
	link := tunneltest.New(t, "tcp", at.Host)
	led.through(func(service string) []string {
		if service == string(events.Installer) {
			return []string{"CHANDLER_AGENT_NATS_URL=nats://" + link.Address()} // what tokens say
		}
		return nil
	})
	w.restart(string(events.Installer))
	w.readyAgain()
	w.borrowCluster()
	w.addCatalog("harbour", example(t))
	w.record = w.database()
	f := &faultsOfAgents{world: w, link: link, agent: w.joined()}
	f.overhear()
	want := w.install("calm")
	if len(want.Events) < 8 || len(want.Objects) < 6 {
		t.Fatalf("the undisturbed install left too little to compare with: %+v", want)
	}
	steps := w.steps("calm")
	for _, harms := range f.harms(steps) {
		w.disturbedByAll(want, harms)
	}
	for _, h := range f.cuts(steps) {
		w.disturbed(want, []harm{h})
	}
	w.authorised()
}

// faultsOfAgents harm the agent of a cluster, and its way to the hub.
type faultsOfAgents struct {
	*world
	link  *tunneltest.Tunnel
	agent stack.Agent

	mu      sync.Mutex
	reports []*nats.Msg // that were written, in their order
}

// cutFor is how long a cut lasts. In make chaos the agent notices it and tries to come back meanwhile.
const cutFor = 40 * time.Second

// harms are what is done to installs whose plans have so many steps, in the order in which its moments come.
func (f *faultsOfAgents) harms(steps int) (all [][]harm) {
	kill := func() {
		f.Kill(f.agent.Name)
		if err := f.LaunchAgent(f.agent); err != nil {
			f.t.Error(err)
		}
	}
	hub := func(service string) func() { return func() { f.restart(service) } }
	if thorough { // each step, and each service at each moment
		for n := 1; n < steps; n++ {
			all = append(all, []harm{{name: "kill-agent", steps: n, do: kill}})
		}
		for i, moment := range moments {
			all = append(all, []harm{
				{name: "kill-agent", moment: moment, do: kill}, {name: "repeat-reports", moment: moment, do: f.repeat},
			})
			if i < len(stack.Services) {
				all = append(all, turned(i, "kill", moments, stack.Services, hub))
			}
		}
		return all
	}
	for i := range stack.Services {
		all = append(all, []harm{
			{name: "kill-agent", moment: moments[i], do: kill},
			{name: "kill-agent", steps: 1 + i*(steps-1)/len(stack.Services), do: kill},
			turned(i, "kill", []string{"installplan.finished.v1"}, stack.Services, hub)[0],
			{name: "repeat-reports", moment: "csv.phase-changed.v1", do: f.repeat},
		})
	}
	return chaos.Some(f.t, 1, all...)
}

// cuts are cuts of the network between the agent and the hub. Meanwhile a service of the hub is killed and comes back.
func (f *faultsOfAgents) cuts(steps int) (all []harm) {
	cut := func(n int) func() {
		return func() {
			f.link.Swallow()
			f.restart(stack.Services[n%len(stack.Services)])
			f.during(cutFor)
			f.link.Heal()
		}
	}
	for i, moment := range moments {
		all = append(all, harm{name: "cut", moment: moment, do: cut(i)})
	}
	for i, n := range []int{1, steps / 2, steps - 1} {
		all = append(all, harm{name: "cut", steps: n, do: cut(i)})
	}
	return chaos.Some(f.t, 1, all...)
}

// joined has an agent join the cluster as people do: a token is made, its manifest is applied, and a person accepts who
// asks with it. Nodes of test clusters run no containers, so that the program of the pod runs beside.
func (w *world) joined() stack.Agent {
	w.t.Helper()
	w.must(w.Post(w.ctx, "/api/v1/clusters", map[string]any{"name": spoke, "access": events.AccessAgent}, nil))
	var manifest string
	w.eventually("the installer knows the cluster", func() (string, bool) {
		out, err := w.chandler("cluster", "join-token", spoke)
		manifest = out
		return fmt.Sprint(err), err == nil
	})
	found := regexp.MustCompile(`join\.json: (\S+)`).FindStringSubmatch(manifest)
	if found == nil {
		w.t.Fatalf("the manifest has no join.json:\n%s", manifest)
	}
	join, err := base64.StdEncoding.DecodeString(found[1])
	w.must(err)
	_, err = w.clientset().CoreV1().Namespaces().Create(w.ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "chandler-agent"}}, metav1.CreateOptions{})
	w.must(err)
	agent := stack.Agent{Name: "agent", Join: string(join), Kubeconfig: string(w.cluster.Kubeconfig())}
	w.must(w.LaunchAgent(agent))
	w.t.Cleanup(func() {
		if w.t.Failed() {
			w.showAgents()
		}
	})
	looks := stack.NewClient(w.Stack.URL(), w.Client.Token) // this route reads no position: it reads the log
	w.eventually("the agent asks", func() (string, bool) {
		var now struct{ Phase string }
		w.must(looks.Get(w.ctx, "/api/v1/clusters/"+spoke+"/agent", &now))
		return now.Phase, now.Phase == "Pending"
	})
	_, err = w.chandler("cluster", "accept", spoke)
	w.must(err)
	w.state("Connected")
	return agent
}

// overhear keeps the reports that the agent writes from now on.
func (f *faultsOfAgents) overhear() {
	f.t.Helper()
	_, err := f.bus().nc.Subscribe(protocol.SubjectReport+".>", func(m *nats.Msg) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.reports = append(f.reports, m)
	})
	f.must(err)
}

// repeat writes all reports again, each twice and the last one first, as whoever could repeat messages would.
func (f *faultsOfAgents) repeat() {
	f.mu.Lock()
	all := slices.Clone(f.reports)
	f.mu.Unlock()
	if len(all) == 0 {
		f.t.Error("the agent has written no report that could be repeated")
	}
	nc, err := f.ConnectNATS(stack.Test)
	if err != nil {
		f.t.Error(err)
		return
	}
	defer nc.Close()
	for _, m := range slices.Backward(all) {
		for range 2 {
			err = errors.Join(err, nc.PublishMsg(&nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data}))
		}
	}
	if err := errors.Join(err, nc.Flush()); err != nil {
		f.t.Error(err)
	}
}

// stepLogsOf are the step logs of a namespace.
func (w *world) stepLogsOf(namespace string) (dynamic.ResourceInterface, error) {
	client, err := dynamic.NewForConfig(w.cluster.RESTConfig())
	if err != nil {
		return nil, err
	}
	return client.Resource(stepLogs).Namespace(namespace), nil
}

// done is how many steps a step log says are done.
func done(o *unstructured.Unstructured) (n int) {
	steps, _, _ := unstructured.NestedSlice(o.Object, "status", "steps")
	for _, s := range steps {
		if step, ok := s.(map[string]any); ok && step["state"] == "Done" {
			n++
		}
	}
	return n
}

// steps is how many steps were done in a namespace.
func (w *world) steps(namespace string) (n int) {
	w.t.Helper()
	logs, err := w.stepLogsOf(namespace)
	w.must(err)
	list, err := logs.List(w.ctx, metav1.ListOptions{})
	w.must(err)
	for _, o := range list.Items {
		n += done(&o)
	}
	if n < len(stack.Services) {
		w.t.Fatalf("%d steps were done in namespace %s: too few to be harmed at", n, namespace)
	}
	return n
}

// whenStepped waits until so many steps are done in a namespace.
func (w *world) whenStepped(namespace string, n int) {
	ctx, cancel := context.WithTimeoutCause(w.ctx, bound, fmt.Errorf("not within %s", bound))
	defer cancel()
	if err := w.stepped(ctx, namespace, n); err != nil {
		w.t.Errorf("%d steps in namespace %s: %v", n, namespace, errors.Join(err, context.Cause(ctx)))
	}
}

func (w *world) stepped(ctx context.Context, namespace string, n int) error {
	logs, err := w.stepLogsOf(namespace)
	if err != nil {
		return err
	}
	seen, err := logs.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer seen.Stop()
	of := map[string]int{} // by step log
	for event := range seen.ResultChan() {
		o, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("the watch ended: %v", event.Object)
		}
		of[o.GetName()] = done(o)
		all := 0
		for _, one := range of {
			all += one
		}
		if all >= n {
			return nil
		}
	}
	return errors.New("the watch ended before")
}
