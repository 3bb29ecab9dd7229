package clusterconfig_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/configseal"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/clusterconfig"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	config "github.com/chandler-fleet/chandler/services/installer/executor/internal/clusterconfig"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/pace"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// cache says what the cluster says, and notes to which accounts secrets are attached.
type cache struct {
	all    config.All
	err    error
	copies [][]string
}

func (c *cache) Get(context.Context) (config.All, error) { return c.all, c.err }

func (c *cache) Copy(_ context.Context, _ string, _ []config.PullSecret, accounts []string,
	_ func(*unstructured.Unstructured),
) error {
	c.copies = append(c.copies, accounts)
	return c.err
}

func operator(name string, accounts ...string) *scope.Operator {
	m := &scope.Operator{Object: &unstructured.Unstructured{Object: map[string]any{}}}
	m.Object.SetName(name)
	for _, a := range accounts {
		m.CSV.Spec.Install.Spec.Permissions = append(m.CSV.Spec.Install.Spec.Permissions,
			bundle.Permissions{ServiceAccountName: a})
	}
	return m
}

// TestReconcile: R-IP-22: the accounts of all operators of a namespace have the pull secrets, each once. While nobody
// knows whether an operator needs them they stay; what fails is tried again and ends no reconcile.
func TestReconcile(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	for name, c := range map[string]struct {
		operators  []*scope.Operator
		unreadable bool
		stopped    bool
		err        error
		want       [][]string
		again      time.Duration
	}{
		"two operators share an account": {
			operators: []*scope.Operator{operator("tide.v1", "tide", "shared"), operator("wind.v1", "shared")},
			want:      [][]string{{"shared", "tide"}}, again: time.Hour,
		},
		"no operator is left":     {want: [][]string{nil}, again: time.Hour},
		"one that cannot be read": {unreadable: true, again: time.Hour},
		"the stop switch": {
			operators: []*scope.Operator{operator("tide.v1", "tide")}, stopped: true, again: time.Hour,
		},
		"the API server is not there": {
			operators: []*scope.Operator{operator("tide.v1", "tide")}, err: away,
			want: [][]string{{"tide"}}, again: time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := &scope.Env{
				Log: slog.New(slog.DiscardHandler), Now: time.Now, Pace: pace.New(time.Second, time.Minute),
				Stop: func(string) *failure.Failure {
					if c.stopped {
						return &failure.Failure{Reason: failure.ReasonStopped}
					}
					return nil
				},
			}
			sc := scope.New(env, protocol.ScopePlans{Scope: protocol.Scope{Namespace: "ports"}}, nil, time.Hour)
			sc.Snapshot.Installed = scope.InstalledOf(c.operators, nil)
			if c.unreadable {
				sc.Snapshot.Installed.Unreadable = map[string]string{"tide.v1": "p"}
			}
			to := &cache{err: c.err}
			if _, err := (&clusterconfig.Stage{Cache: to}).Reconcile(t.Context(), sc); err != nil {
				t.Fatal(err)
			}
			if !slices.EqualFunc(to.copies, c.want, slices.Equal[[]string]) || sc.Attempts.Again() != c.again {
				t.Errorf(
					"attached to %v, again after %s, want %v after %s",
					to.copies,
					sc.Attempts.Again(),
					c.want,
					c.again,
				)
			}
		})
	}
}

// TestReader: what the cluster says is in the scope; where it cannot be read nothing goes on, since overlays depend on
// it.
func TestReader(t *testing.T) {
	t.Parallel()
	env := &scope.Env{}
	sc := scope.New(env, protocol.ScopePlans{}, nil, time.Hour)
	proxy := config.Proxy{HTTP: "http://proxy.sea.test"}
	_, err := clusterconfig.Reader{Cache: &cache{all: config.All{Proxy: proxy}}}.Reconcile(t.Context(), sc)
	if err != nil || sc.Found.Config.Proxy != proxy {
		t.Errorf("got %+v, %v", sc.Found.Config, err)
	}
	away := errors.New("away")
	if _, err := (clusterconfig.Reader{Cache: &cache{err: away}}).Reconcile(t.Context(), sc); !errors.Is(err, away) {
		t.Errorf("got %v", err)
	}
}

// TestProxy: R-SUB-10, R-PRX-1: the variables of the cluster's proxy are in every container of a Deployment, unless the
// subscription names one of them.
func TestProxy(t *testing.T) {
	t.Parallel()
	root, err := configseal.NewRoot(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	key, err := root.For("default", "cluster")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config string
		want   bool
	}{
		"nothing is configured":          {"", true},
		"something else is configured":   {`{"env":[{"name":"LEVEL","value":"1"}]}`, true},
		"the subscription takes it away": {`{"env":[{"name":"HTTP_PROXY","value":""}]}`, false},
	} {
		sc := scope.New(&scope.Env{Configs: key}, protocol.ScopePlans{}, nil, time.Hour)
		sc.Found.Config.Proxy = config.Proxy{HTTP: "http://proxy.sea.test"}
		overlay := (&clusterconfig.Stage{}).Proxy(sc)
		body := &unstructured.Unstructured{Object: map[string]any{
			"kind": "Deployment", "spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": "tide"}},
			}}},
		}}
		value, err := key.Seal("commitment", json.RawMessage(c.config))
		if err != nil {
			t.Fatal(err)
		}
		target := scope.RenderTarget{Config: value}
		if !overlay.About(target, "Deployment", "tide") || overlay.About(target, "Service", "tide") {
			t.Error("the overlay is about Deployments alone")
		}
		if err := overlay.Apply(target, body); err != nil {
			t.Fatal(err)
		}
		containers, _, err := unstructured.NestedSlice(body.Object, "spec", "template", "spec", "containers")
		if err != nil {
			t.Fatal(err)
		}
		_, has := containers[0].(map[string]any)["env"]
		if has != c.want {
			t.Errorf("%s: got %v, want %v", name, containers, c.want)
		}
	}
}
