// Command keeper owns everything that the demo leaves running: when it ends, in whatever way, all of it ends.
//
//	keeper keep DIR BIN NAME...         start Chandler from the programs in BIN and clusters; hold them until the end
//	keeper fleet SPOKES DIR BIN NAME... the same, with so many simulated clusters, and agents for those that join
//	keeper look NAME KUBECONFIG         show what the API server of a cluster says of the demo's operators
//
// The demo runs it. It is a program of its own because the demo has something to show long before the client libraries
// of Kubernetes are compiled.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "keeper:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	const arguments = 3
	if len(args) < arguments {
		return errors.New("usage: keeper keep DIR BIN NAME... | fleet SPOKES DIR BIN NAME... | look NAME KUBECONFIG")
	}
	switch args[0] {
	case "keep":
		return keep(ctx, &keeper{dir: args[1], bin: args[2], names: args[arguments:]})
	case "fleet":
		spokes, err := strconv.Atoi(args[1])
		if err != nil || len(args) < arguments+1 {
			return fmt.Errorf("%q is no number of clusters, or a folder is missing", args[1])
		}
		return keep(ctx, &keeper{
			dir: args[2], bin: args[arguments], names: args[arguments+1:], fleet: true, spokes: spokes,
		})
	case "look":
		return look(ctx, os.Stdout, args[1], args[2])
	default:
		return fmt.Errorf("unknown command %q", args[0])
	}
}
