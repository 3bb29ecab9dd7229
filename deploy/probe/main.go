// Command probe asks a service in the same container whether it is ready. The images hold no shell
// and no curl, and docker compose can only run a command inside the container.
//
//	probe http://127.0.0.1:9090/readyz
//
// It exits with 0 for status 200. For everything else it exits with 1 and writes what it was told.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

const (
	// timeout is longer than a service's own bound of its checks (0.9 s), so that the reason arrives.
	timeout = 2 * time.Second
	// maxAnswer bounds what is shown: a readiness answer names a handful of checks.
	maxAnswer = 16 << 10
)

func main() {
	if err := probe(os.Args[1:]); err != nil {
		// Nothing can be done about a standard error that cannot be written; the status still tells.
		_, _ = fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func probe(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: probe URL")
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, args[0], http.NoBody)
	if err != nil {
		return err
	}
	// As the kubelet: a probe tells no secret, and the certificate is for another name than that of a pod.
	unchecked := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // see above
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: unchecked}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", args[0], resp.Status, body)
	}
	return nil
}
