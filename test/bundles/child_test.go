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
			debug.FreeOSMemory()
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
		Tenant: hubtest.Tenant, Cluster: "test", ClusterID: o.ClusterID, REST: config, JetStream: js, GrantKey: key,
		Holder: "child", Now: time.Now, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
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

// leaseName is the name of the executor's lease.
const leaseName = "chandler-executor"

// renamed gives the executor's lease another name of the same length, so that the message keeps its form.
func (o childOrder) renamed(next http.RoundTripper) http.RoundTripper {
	name := fmt.Sprintf("%s%02d", leaseName[:len(leaseName)-2], o.Part)
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if !strings.Contains(r.URL.Path, "/leases") {
			return next.RoundTrip(r)
		}
		r = r.Clone(r.Context())
		r.URL.Path = strings.Replace(r.URL.Path, "/leases/"+leaseName, "/leases/"+name, 1)
		if r.Body != nil {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			r.GetBody, r.Body = nil, io.NopCloser(bytes.NewReader(bytes.ReplaceAll(body, []byte(leaseName), []byte(name))))
		}
		return next.RoundTrip(r)
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
