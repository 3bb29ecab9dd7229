package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/chandler-fleet/chandler/test/testcluster/internal/pool"
)

const (
	endTimeout    = 20 * time.Second // for an orderly end of the daemon, which takes about one second
	statusTimeout = 2 * time.Second
)

// down ends the daemon with its clusters and removes what is left: also after a daemon that was killed.
func down(ctx context.Context, s settings) error {
	old, err := read(s.dir)
	if err != nil {
		return err
	}
	if old == nil {
		fmt.Fprintf(os.Stderr, "no clusters are up in %s\n", s.dir)
		return reap(ctx)
	}
	if err := endOwner(ctx, *old); err != nil {
		return fmt.Errorf("down: %w", err)
	}
	if err := reap(ctx); err != nil {
		return fmt.Errorf("down: %w", err)
	}
	return remove(s.dir)
}

// endOwner asks the daemon to end, and does not ask for long.
func endOwner(ctx context.Context, s state) error {
	if err := s.Owner.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	patience, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	if s.Owner.Wait(patience) == nil {
		return nil
	}
	return s.Owner.Kill(ctx)
}

// reap ends what belongs to owners that are gone, of any directory.
func reap(ctx context.Context) error {
	p, err := pool.Open()
	if err != nil {
		return err
	}
	_, err = p.Members(ctx)
	return err
}

// status asks every cluster itself.
func status(ctx context.Context, s settings, out io.Writer) error {
	now, err := read(s.dir)
	if err != nil {
		return err
	}
	if now == nil {
		now = &state{}
		fmt.Fprintf(os.Stderr, "no clusters are up in %s\n", s.dir)
	}
	clusters := []cluster{}
	for _, c := range now.Clusters {
		c.State = ask(ctx, c)
		clusters = append(clusters, c)
	}
	if missing := now.Count - len(clusters); missing > 0 && now.Owner.Alive() {
		fmt.Fprintf(os.Stderr, "%d more are starting\n", missing)
	}
	return show(out, clusters, s.json)
}

func ask(ctx context.Context, c cluster) string {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return "gone"
	}
	config.Timeout = statusTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "gone"
	}
	if err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return "not answering"
	}
	return "ready"
}
