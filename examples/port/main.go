// Command port stands between Port and Chandler: a self-service action of Port subscribes to an operator, and its run
// tells what became of it. README.md says how to set it up.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/chandler-fleet/chandler/examples/port/receiver"
	"github.com/chandler-fleet/chandler/libs/client"
)

const (
	// portAPI is that of Port in Europe; PORT_API names another region's.
	portAPI = "https://api.getport.io"
	// headerTime bounds how long a caller takes for its headers, stopTime how long requests at work have at the end.
	headerTime, stopTime = 10 * time.Second, 15 * time.Second
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	chandler, err := client.New(client.Config{URL: os.Getenv("CHANDLER_URL"), Token: os.Getenv("CHANDLER_TOKEN")})
	if err != nil {
		return err
	}
	handler, err := receiver.New(receiver.Config{
		Chandler: chandler, Pages: os.Getenv("CHANDLER_URL"), WebhookSecret: os.Getenv("CHANDLER_WEBHOOK_SECRET"),
		PortAPI: cmp.Or(os.Getenv("PORT_API"), portAPI), PortClientID: os.Getenv("PORT_CLIENT_ID"),
		PortClientSecret: os.Getenv("PORT_CLIENT_SECRET"), Log: slog.Default(), Now: time.Now,
	})
	if err != nil {
		return err
	}
	server := &http.Server{
		Addr: cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:8090"), Handler: handler, ReadHeaderTimeout: headerTime,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	return server.Shutdown(late)
}
