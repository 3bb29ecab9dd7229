// Command keeper owns everything that the demo leaves running: when it ends, in whatever way, all of it ends.
//
//	keeper keep DIR BIN NAME...         start Chandler from the programs in BIN and clusters; hold them until the end
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
		return errors.New("usage: keeper keep DIR BIN NAME... | keeper look NAME KUBECONFIG")
	}
	switch args[0] {
	case "keep":
		return keep(ctx, args[1], args[2], args[arguments:])
	case "look":
		return look(ctx, os.Stdout, args[1], args[2])
	default:
		return fmt.Errorf("unknown command %q", args[0])
	}
}
