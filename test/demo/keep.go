package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chandler-fleet/chandler/test/internal/proc"
	"github.com/chandler-fleet/chandler/test/stack"
	"github.com/chandler-fleet/chandler/test/testcluster"
)

// keepCommand starts the background process that owns everything.
const keepCommand = "keep"

// clusterNames are the clusters of the demo.
var clusterNames = []string{"east", "west"}

// Files of the demo's directory.
const (
	keeperFile   = "keeper.json"
	stateFile    = "state.json"
	progressFile = "progress.log"
)

// state is what the keeper tells the one who started it.
type state struct {
	URL      string             `json:"url"`
	Token    string             `json:"token"`
	Bin      string             `json:"bin"`
	Clusters map[string]cluster `json:"clusters"`
}

type cluster struct {
	Kubeconfig string `json:"kubeconfig"`
}

// keep starts everything, says so, and holds it until ctx ends.
func keep(ctx context.Context, dir string) (err error) {
	out := os.Stdout // the progress file
	var clusters []*testcluster.Cluster
	var st *stack.Stack
	defer func() {
		for _, c := range clusters {
			if c != nil {
				err = errors.Join(err, c.Stop())
			}
		}
		if st != nil {
			err = errors.Join(err, st.Stop())
		}
	}()
	if clusters, err = startClusters(ctx, dir, out); err != nil {
		return err
	}
	st, err = stack.Start(ctx, stack.Options{
		Dir: filepath.Join(dir, "stack"), Durable: true, Tell: func(line string) { fmt.Fprintln(out, line) },
	})
	if err != nil {
		return err
	}
	s := state{URL: st.URL(), Token: st.Token(), Bin: st.Bin(), Clusters: map[string]cluster{}}
	for _, c := range clusters {
		s.Clusters[c.Name()] = cluster{Kubeconfig: c.KubeconfigPath()}
	}
	if err := writeJSON(filepath.Join(dir, stateFile), s); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// startClusters starts all at once; the first of them builds the programs if they are not there.
func startClusters(ctx context.Context, dir string, out io.Writer) ([]*testcluster.Cluster, error) {
	clusters := make([]*testcluster.Cluster, len(clusterNames))
	var group errgroup.Group
	for i, name := range clusterNames {
		group.Go(func() (err error) {
			clusters[i], err = testcluster.Start(ctx, testcluster.Options{
				Name: name, Dir: filepath.Join(dir, "clusters", name), Log: milestones{out},
			})
			return err
		})
	}
	return clusters, group.Wait()
}

// milestones passes on what a person wants to know of a starting cluster: how a build goes on, and when it works.
type milestones struct{ out io.Writer }

func (m milestones) Write(p []byte) (int, error) {
	for _, detail := range []string{"place", "etcd", "certificates", "controllers", "nodes"} {
		if bytes.Contains(p, []byte(": "+detail+" done")) {
			return len(p), nil
		}
	}
	return m.out.Write(p)
}

// startKeeper starts the keeper and passes on what it says until everything is up.
func startKeeper(ctx context.Context, dir string, say func(string)) (state, error) {
	self, err := os.Executable()
	if err != nil {
		return state{}, err
	}
	root, err := stack.Root()
	if err != nil {
		return state{}, err
	}
	keeper, err := proc.Start(proc.Spec{
		Name: "demo", Path: self, Args: []string{keepCommand, "--dir", dir}, Env: os.Environ(), Dir: root,
		Log: filepath.Join(dir, progressFile), Outlive: true,
	})
	if err != nil {
		return state{}, err
	}
	if err := writeJSON(filepath.Join(dir, keeperFile), keeper.ID()); err != nil {
		return state{}, err
	}
	return awaitKeeper(ctx, dir, keeper, say)
}

// lookEvery is how often the keeper's words are looked for: fast enough to seem immediate.
const lookEvery = 100 * time.Millisecond

func awaitKeeper(ctx context.Context, dir string, keeper *proc.Process, say func(string)) (state, error) {
	words := &follower{path: filepath.Join(dir, progressFile), say: say}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		words.look()
		var s state
		err := readJSON(filepath.Join(dir, stateFile), &s)
		if err == nil {
			return s, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return state{}, err
		}
		if failure := keeper.Failure(); failure != nil {
			return state{}, failure
		}
		select {
		case <-ctx.Done():
			return state{}, context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// stopBound is how long the keeper may take to end everything; it kills, so it needs a second.
const stopBound = 30 * time.Second

// down ends the keeper and with it everything, and removes the directory.
func down(ctx context.Context, dir string) error {
	var id proc.ID
	err := readJSON(filepath.Join(dir, keeperFile), &id)
	if errors.Is(err, os.ErrNotExist) {
		return os.RemoveAll(dir) // nothing runs; a directory without a keeper is of no use
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), stopBound, fmt.Errorf("not ended within %s", stopBound))
	defer cancel()
	if err := id.Terminate(ctx); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// writeJSON makes the file appear whole.
func writeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}
