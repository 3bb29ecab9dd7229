// Command simspokes adds simulated clusters to a hub that runs, and plays them until it is ended: each is registered,
// joins by a token, and is served by the executor of an agent (package spokes). NATS has to be in operator mode.
//
//	CHANDLER_URL=http://127.0.0.1:8080 CHANDLER_TOKEN=… simspokes -clusters 200 -prefix berth -label coast=north
//
// It says on standard output how many have joined.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/chandler-fleet/chandler/test/fleetsim/spokes"
	"github.com/chandler-fleet/chandler/test/internal/api"
)

// joinBound is how long all of them may take to join: some hundreds take less than a minute on two busy cores.
const joinBound = 5 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "simspokes:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	clusters := flag.Int("clusters", 100, "how many")
	prefix := flag.String("prefix", "spoke", "what their names begin with; a number follows")
	label := flag.String("label", "", "label of all of them, as key=value")
	flag.Parse()
	hub := api.New(os.Getenv("CHANDLER_URL"), os.Getenv("CHANDLER_TOKEN"))
	if hub.URL == "" || hub.Token == "" {
		return errors.New("CHANDLER_URL and CHANDLER_TOKEN say which hub, and are not set")
	}
	labels := map[string]string{}
	if *label != "" {
		key, value, ok := strings.Cut(*label, "=")
		if !ok {
			return fmt.Errorf("-label %q: want key=value", *label)
		}
		labels[key] = value
	}
	names := make([]string, *clusters)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%03d", *prefix, i+1)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	fleet := spokes.New(names, log)
	defer func() { err = errors.Join(err, fleet.Stop()) }()
	joining, cancel := context.WithTimeoutCause(ctx, joinBound, fmt.Errorf("not joined within %s", joinBound))
	defer cancel()
	err = fleet.Join(joining, hub, func(string) map[string]string { return labels })
	if ctx.Err() != nil {
		return nil // it was ended while they joined
	}
	if err != nil {
		return err
	}
	fmt.Printf("%d clusters have joined\n", len(names))
	<-ctx.Done()
	return nil
}
