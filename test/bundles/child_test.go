package bundles_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/services/installer/executor"
	"github.com/chandler-fleet/chandler/test/hubtest"
)

// childEnv holds the configuration of a process that hosts executors and nothing else, so that its memory is theirs.
const childEnv = "CHANDLER_TEST_HOST"

// childConfig is what the process is told at its start.
type childConfig struct {
	NATS     string `json:"nats"`
	GrantKey []byte `json:"grantKey"`
}

// collections is after how many of them nothing gets smaller any more: each halves the stacks that are not needed. Go
// makes one every two minutes of a process that rests.
const collections = 5

// childOrder is a line that the process reads: a cluster to serve, or else to say what the process uses.
type childOrder struct {
	Kubeconfig string `json:"kubeconfig,omitempty"`
	ClusterID  string `json:"clusterId,omitempty"`
	// Part tells the executors that share an API server apart: each but the first, 0, takes a lease of another name.
	Part int `json:"part,omitempty"`
	// Collect gives back to the machine what is free.
	Collect bool `json:"collect,omitempty"`
}

// childUse is what the process uses.
type childUse struct {
	Resident  int64         `json:"resident"`  // bytes, as they are
	Anonymous int64         `json:"anonymous"` // of these without the program
	Peak      int64         `json:"peak"`      // most that was ever resident
	CPU       time.Duration `json:"cpu"`       // since the start
}

// child hosts executors until its standard input ends.
func child(config string) int {
	if err := runChild(config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func runChild(config string) error {
	var c childConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	conn, err := nats.Connect(c.NATS)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	orders, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var o childOrder
		switch err := orders.Decode(&o); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if o.Kubeconfig != "" {
			if err := o.serve(js, c.GrantKey); err != nil {
				return err
			}
			continue
		}
		if o.Collect {
			for range collections {
				debug.FreeOSMemory()
			}
		}
		use, err := measure()
		if err != nil {
			return err
		}
		if err := answers.Encode(use); err != nil {
			return err
		}
	}
}

// serve starts an executor as the installer does. It ends with the process.
func (o childOrder) serve(js jetstream.JetStream, key []byte) error {
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(o.Kubeconfig))
	if err != nil {
		return err
	}
	if o.Part > 0 {
		config.Wrap(o.renamed)
	}
	e, err := executor.New(executor.Config{
		Tenant: hubtest.Tenant, Cluster: "test", ClusterID: o.ClusterID, REST: config, JetStream: js,
		Installation: bustest.Installation, GrantKey: keys.Accept(key), Configs: hubtest.Configs(o.ClusterID),
		Holder: "child", Holds: &hubtest.Holds{}, Now: time.Now, Log: slog.New(
			slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	go func() {
		if err := e.Run(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	return nil
}

// own are the objects that an executor has for itself in a cluster: its lease, and the fence that holds for its epochs.
func own() []string { return []string{"chandler-executor", "chandler-fence"} }

// renamed gives the executor's own objects other names of the same length, so that messages keep their form, and takes
// them back out of the answers. What a watch tells stays as it is: of objects of other names nobody takes notice.
func (o childOrder) renamed(next http.RoundTripper) http.RoundTripper {
	other := func(name string) string { return fmt.Sprintf("%s%02d", name[:len(name)-2], o.Part) }
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Has("watch") || !strings.Contains(r.URL.Path, "/leases") &&
			!strings.Contains(r.URL.Path, "/validatingadmissionpolic") && !strings.Contains(r.URL.RawQuery, "dryRun") {
			return next.RoundTrip(r)
		}
		r = r.Clone(r.Context())
		var body []byte
		if r.Body != nil {
			var err error
			if body, err = io.ReadAll(r.Body); err != nil {
				return nil, err
			}
		}
		for _, name := range own() {
			if !strings.Contains(r.URL.Path, "/serviceaccounts") {
				r.URL.Path = strings.Replace(r.URL.Path, "/"+name, "/"+other(name), 1)
			}
			if name != "chandler-executor" || strings.Contains(r.URL.Path, "/leases") {
				// it is the name of its account, too
				body = bytes.ReplaceAll(body, []byte(name), []byte(other(name)))
			}
		}
		if r.Body != nil {
			r.GetBody, r.Body = nil, io.NopCloser(bytes.NewReader(body))
		}
		answer, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(answer.Body)
		if err := errors.Join(err, answer.Body.Close()); err != nil {
			return nil, err
		}
		for _, name := range own() {
			text = bytes.ReplaceAll(text, []byte(other(name)), []byte(name))
		}
		answer.Body = io.NopCloser(bytes.NewReader(text))
		return answer, nil
	})
}

func measure() (u childUse, err error) {
	var spent syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &spent); err != nil {
		return u, err
	}
	u.CPU = time.Duration(spent.Utime.Nano() + spent.Stime.Nano())
	return u, readStatus(map[string]*int64{"VmRSS": &u.Resident, "RssAnon": &u.Anonymous, "VmHWM": &u.Peak})
}

// readStatus reads sizes from what the kernel says of this process, in bytes.
func readStatus(into map[string]*int64) error {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		size, ok := into[name]
		if !ok {
			continue
		}
		var kb int64
		if _, err := fmt.Sscanf(rest, "%d kB", &kb); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		*size = kb << 10
	}
	return lines.Err()
}
