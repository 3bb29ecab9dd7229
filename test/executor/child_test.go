package executor_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/services/installer/executor"
	"github.com/chandler-fleet/chandler/test/hubtest"
)

// childEnv holds the configuration of an executor that runs as a process of its own.
const childEnv = "CHANDLER_TEST_EXECUTOR"

// childConfig is what the process is told.
type childConfig struct {
	Kubeconfig string `json:"kubeconfig"`
	NATS       string `json:"nats"`
	Holder     string `json:"holder"`
	ClusterID  string `json:"clusterId"`
	GrantKey   []byte `json:"grantKey"`
	// HoldAt is the number of the apply (from 1, admission policies aside) before which the process stands still until
	// it reads a line.
	HoldAt int `json:"holdAt"`
}

// gate holds one apply back, and lets no renewal of the lease through from then until the apply was
// answered: a process that stood still does not know yet that its lease is gone.
type gate struct {
	next    http.RoundTripper
	holdAt  int
	mu      sync.Mutex
	applies int
	closed  chan struct{} // not nil while renewals wait
}

func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "/leases/") {
		g.mu.Lock()
		closed := g.closed
		g.mu.Unlock()
		if closed != nil {
			<-closed
		}
		return g.next.RoundTrip(r)
	}
	// Admission policies are not subject to admission policies: no fence keeps a late write of one out, and the
	// holder's next look writes it again.
	if r.Method != http.MethodPatch || r.URL.Query().Get("fieldManager") == "" ||
		strings.Contains(r.URL.Path, "/admissionregistration.k8s.io/") {
		return g.next.RoundTrip(r)
	}
	g.mu.Lock()
	g.applies++
	hold := g.applies == g.holdAt
	if hold {
		g.closed = make(chan struct{})
	}
	g.mu.Unlock()
	if !hold {
		return g.next.RoundTrip(r)
	}
	return g.hold(r)
}

func (g *gate) hold(r *http.Request) (*http.Response, error) {
	sayf("holding %s", r.URL.Path)
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return nil, err
	}
	// The time that the request had is over by now; a real pause does not show in it.
	res, err := g.next.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
	if err != nil {
		sayf("answer error %v", err)
	} else {
		body, readErr := io.ReadAll(res.Body)
		res.Body = io.NopCloser(strings.NewReader(string(body)))
		sayf("answer %d %s %v", res.StatusCode, strings.ReplaceAll(string(body), "\n", " "), readErr)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.closed)
	g.closed = nil
	return res, err
}

// sayf tells the test that started this process.
func sayf(format string, args ...any) {
	if _, err := fmt.Fprintf(os.Stdout, format+"\n", args...); err != nil {
		panic(err) // nobody listens any more
	}
}

// child runs the executor of one process until it is killed.
func child(config string) int {
	var c childConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if err := runChild(c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func runChild(c childConfig) error {
	rest, err := clientcmd.RESTConfigFromKubeConfig([]byte(c.Kubeconfig))
	if err != nil {
		return err
	}
	rest.Wrap(func(rt http.RoundTripper) http.RoundTripper { return &gate{next: rt, holdAt: c.HoldAt} })
	conn, err := nats.Connect(c.NATS, nats.CustomInboxPrefix(natsauth.Inbox(natsauth.AgentName(c.ClusterID))))
	if err != nil {
		return err
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	e, err := executor.New(executor.Config{
		Tenant: "default", Cluster: "test", ClusterID: c.ClusterID, REST: rest, JetStream: js,
		Installation: bustest.Installation, GrantKey: keys.Accept(c.GrantKey),
		Configs: hubtest.Configs(c.ClusterID),
		Holder:  c.Holder, Holds: &hubtest.Holds{}, Now: time.Now, Timing: hubtest.Quick(),
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	return e.Run(context.Background())
}
