package executor_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// kubelet answers the API server's requests for logs as a kubelet does: kwok, which plays the nodes, has none. The API
// server reaches it at the address and the port of the status of its node.
type kubelet struct {
	mu   sync.Mutex
	logs map[string][]string // by pod/container, and with /previous; lines with their times
}

// ServeHTTP implements http.Handler: /containerLogs/NAMESPACE/POD/CONTAINER.
func (k *kubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	part := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	q := r.URL.Query()
	if len(part) != 4 || part[0] != "containerLogs" || q.Get("timestamps") != "true" {
		http.Error(w, "unexpected "+r.URL.String(), http.StatusNotImplemented)
		return
	}
	key := part[2] + "/" + part[3]
	if q.Get("previous") == "true" {
		key += "/previous"
	}
	k.mu.Lock()
	lines, there := k.logs[key]
	lines = slices.Clone(lines)
	k.mu.Unlock()
	if !there {
		http.Error(w, "previous terminated container not found", http.StatusBadRequest)
		return
	}
	var since time.Time
	if text := q.Get("sinceTime"); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		since = at
	}
	if text := q.Get("sinceSeconds"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		since = time.Now().Add(-time.Duration(n) * time.Second)
	}
	if n, err := strconv.Atoi(q.Get("tailLines")); err == nil {
		lines = lines[max(0, len(lines)-n):]
	}
	for _, line := range lines {
		at, _, _ := strings.Cut(line, " ")
		if t, err := time.Parse(time.RFC3339Nano, at); err == nil && t.Before(since) {
			continue
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return
		}
	}
}

// writes adds lines to a log, so many nanoseconds after a moment.
func (k *kubelet) writes(log string, at time.Time, nanos int, texts ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.logs[log] == nil {
		k.logs[log] = []string{}
	}
	for _, text := range texts {
		k.logs[log] = append(k.logs[log], at.Add(time.Duration(nanos)).Format(time.RFC3339Nano)+" "+text)
	}
}

// logged is an operator that runs, and the kubelet of its pod.
type logged struct {
	*bed
	t       *testing.T
	kubelet *kubelet
	server  *httptest.Server
	csv     string
	pod     corev1.Pod
}

const loggedNamespace = "logged"

func newLogged(t *testing.T) *logged {
	t.Helper()
	b := newBed(t)
	b.start(b.config("one"))
	l := &logged{bed: b, t: t, kubelet: &kubelet{logs: map[string][]string{}}}
	l.server = httptest.NewTLSServer(l.kubelet)
	t.Cleanup(l.server.Close)
	b.namespace(t, loggedNamespace)
	o := operator{name: "tide", version: "1.0.0"}
	l.csv = o.csv()
	p := b.plan(loggedNamespace, loggedNamespace, planned{content: o.content(t)})
	b.want(loggedNamespace, p)
	b.finishes(t, loggedNamespace, p, l.csv)
	pods, err := b.kube.CoreV1().Pods(loggedNamespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(pods.Items) != 1 {
		t.Fatalf("%d pods", len(pods.Items))
	}
	l.pod = pods.Items[0]
	_, port, err := net.SplitHostPort(l.server.Listener.Addr().String())
	must(t, err)
	// Nothing else listens at 127.0.0.1 for the node.
	patch := fmt.Sprintf(`{"status":{"addresses":[{"type":"InternalIP","address":"127.0.0.1"}],"daemonEndpoints":`+
		`{"kubeletEndpoint":{"Port":%s}}}}`, port)
	_, err = b.kube.CoreV1().Nodes().Patch(t.Context(), l.pod.Spec.NodeName, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{}, "status")
	must(t, err)
	return l
}

func (l *logged) log() string { return l.pod.Name + "/manager" }

func (l *logged) ask(q protocol.LogQuestion) (a protocol.LogAnswer, err error) {
	l.t.Helper()
	q.Namespace = loggedNamespace
	if q.CSV == "" {
		q.CSV = l.csv
	}
	err = l.Ask(l.t.Context(), protocol.RPCLogs, q, &a)
	return a, err
}

// shows asks, and compares the texts of all lines.
func (l *logged) shows(what string, q protocol.LogQuestion, want string) protocol.LogAnswer {
	l.t.Helper()
	a, err := l.ask(q)
	must(l.t, err)
	var got []string
	for _, c := range a.Containers {
		for line := range strings.Lines(string(c.Lines)) {
			_, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			got = append(got, text)
		}
		if c.Problem != "" {
			got = append(got, "!"+c.Problem)
		}
	}
	if strings.Join(got, " ") != want {
		l.t.Errorf("%s: told %q, want %q", what, strings.Join(got, " "), want)
	}
	return a
}

// TestLogs: what pods of an operator have written is told through the API server of the cluster, and goes on from
// answer to answer without a gap and without doubles, beyond a restart; of pods that are not the operator's nothing is
// told (R-TRB-9).
func TestLogs(t *testing.T) {
	t.Parallel()
	l := newLogged(t)
	second := time.Now().UTC().Add(-time.Minute).Truncate(time.Second)
	l.kubelet.writes(l.log(), second, 1, "starting", "begun")
	l.kubelet.writes(l.log(), second, 5, "steady")

	a := l.shows("the whole", protocol.LogQuestion{}, "starting begun steady")
	if len(a.Containers) != 1 || a.Containers[0].Pod != l.pod.Name || a.Containers[0].Container != "manager" || a.More {
		t.Errorf("told of %+v", a)
	}
	one, none := int64(1), int64(0)
	l.shows("the last line", protocol.LogQuestion{Tail: &one}, "steady")
	l.shows("an hour", protocol.LogQuestion{SinceSeconds: 3600}, "starting begun steady")
	late := l.shows("a second", protocol.LogQuestion{SinceSeconds: 1}, "")
	now := l.shows("nothing yet", protocol.LogQuestion{Tail: &none}, "")

	l.kubelet.writes(l.log(), second, 5, "of the same moment")
	l.kubelet.writes(l.log(), second, 6, "and later")
	for what, before := range map[string]protocol.LogAnswer{"all": a, "of the last second": late, "from now": now} {
		l.shows("after "+what, protocol.LogQuestion{After: before.After}, "of the same moment and later")
	}
	l.restarts(a.After, second)
	l.refuses()
	l.stranger(second)
	l.crowd()
	l.away()
}

// restarts: what the container wrote last comes before what it writes after its restart.
func (l *logged) restarts(after string, second time.Time) {
	l.t.Helper()
	l.kubelet.mu.Lock()
	l.kubelet.logs[l.log()+"/previous"] = l.kubelet.logs[l.log()]
	l.kubelet.logs[l.log()] = []string{}
	l.kubelet.mu.Unlock()
	l.kubelet.writes(l.log()+"/previous", second, 7, "panic")
	l.kubelet.writes(l.log(), second.Add(time.Second), 0, "again")
	patch := []byte(`{"status":{"containerStatuses":[{"name":"manager","restartCount":1}]}}`)
	_, err := l.kube.CoreV1().Pods(loggedNamespace).Patch(l.t.Context(), l.pod.Name, types.StrategicMergePatchType,
		patch, metav1.PatchOptions{}, "status")
	must(l.t, err)
	b := l.shows("beyond a restart", protocol.LogQuestion{After: after}, "of the same moment and later panic again")
	l.shows("after it", protocol.LogQuestion{After: b.After}, "")
	l.shows("before it", protocol.LogQuestion{Previous: true},
		"starting begun steady of the same moment and later panic")
}

func (l *logged) refuses() {
	l.t.Helper()
	for what, c := range map[string]struct {
		q    protocol.LogQuestion
		kind errs.Kind
		text string
	}{
		"an operator that is not installed": {
			protocol.LogQuestion{CSV: "ebb.v1"}, errs.NotFound, "ebb.v1 is not installed",
		},
		"a Deployment of nobody": {
			protocol.LogQuestion{Deployment: "other"}, errs.NotFound, "has no Deployment other: it has tide-controller",
		},
		"a pod of nobody":    {protocol.LogQuestion{Pod: "other"}, errs.NotFound, "has no pod other"},
		"no container of it": {protocol.LogQuestion{Container: "other"}, errs.NotFound, "there are manager"},
		"no position":        {protocol.LogQuestion{After: "nonsense"}, errs.Invalid, "the position is none"},
	} {
		if _, err := l.ask(c.q); !errs.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			l.t.Errorf("%s: %v", what, err)
		}
	}
}

// stranger: a pod that has the labels of the operator's and is somebody else's is none of the operator's.
func (l *logged) stranger(second time.Time) {
	l.t.Helper()
	l.lookalikes("stranger")
	l.kubelet.writes("stranger/manager", second, 0, "secret")
	l.shows("beside a stranger", protocol.LogQuestion{}, "again")
	if _, err := l.ask(protocol.LogQuestion{Pod: "stranger"}); !errs.Is(err, errs.NotFound) {
		l.t.Errorf("the stranger's log: %v", err)
	}
}

// lookalikes are pods that have the labels of the operator's and another owner.
func (l *logged) lookalikes(names ...string) {
	l.t.Helper()
	owner, err := l.kube.CoreV1().ConfigMaps(loggedNamespace).Create(l.t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: names[0]}}, metav1.CreateOptions{})
	must(l.t, err)
	yes := true
	for _, name := range names {
		_, err = l.kube.CoreV1().Pods(loggedNamespace).Create(l.t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: l.pod.Labels, OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: &yes,
				}},
			},
			Spec: corev1.PodSpec{
				NodeName:   l.pod.Spec.NodeName,
				Containers: []corev1.Container{{Name: "manager", Image: "example.com/x:1"}},
			},
		}, metav1.CreateOptions{})
		must(l.t, err)
	}
}

// crowd: where there are more pods than are looked at, that is told, and one that is named is found among them.
func (l *logged) crowd() {
	l.t.Helper()
	if a, err := l.ask(protocol.LogQuestion{}); err != nil || a.MorePods {
		l.t.Errorf("%v: of few pods is told that there are more: %v", err, a.MorePods)
	}
	var names []string
	for i := range 50 {
		names = append(names, fmt.Sprintf("crowd-%02d", i))
	}
	l.lookalikes(names...)
	if a := l.shows("in a crowd", protocol.LogQuestion{}, ""); !a.MorePods {
		l.t.Error("nothing is told of pods that are not looked at")
	}
	if a := l.shows("named in a crowd", protocol.LogQuestion{Pod: l.pod.Name}, "again"); a.MorePods {
		l.t.Error("more than the one that was named are looked for")
	}
}

// away: what stands in the way is told: of a node that does not answer, and of a right that somebody took away.
func (l *logged) away() {
	l.t.Helper()
	l.server.Close()
	a, err := l.ask(protocol.LogQuestion{Pod: l.pod.Name})
	must(l.t, err)
	if len(a.Containers) != 1 || !strings.Contains(a.Containers[0].Problem, "connection refused") {
		l.t.Errorf("of a node that is away is told %+v", a.Containers)
	}
	must(l.t, l.kube.RbacV1().ClusterRoleBindings().Delete(l.t.Context(), kube.ExecutorAccount, metav1.DeleteOptions{}))
	await(l.t, "the loss of the right", func(context.Context) error {
		_, err := l.ask(protocol.LogQuestion{})
		if err == nil {
			return errors.New("it is still there")
		}
		if !errs.Is(err, errs.Conflict) || !strings.Contains(err.Error(), "may not read logs in cluster") ||
			!strings.Contains(err.Error(), "cannot get resource") {
			l.t.Errorf("without the right: %v", err)
		}
		return nil
	})
}
