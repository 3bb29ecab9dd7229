package httpserver_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/httpserver"
)

// start serves h and returns its address and a stop that returns what Serve returned.
func start(t *testing.T, h http.HandlerFunc, drain time.Duration) (url string, stop func() error) {
	t.Helper()
	ln, err := httpserver.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- httpserver.Serve(ctx, ln, h, drain) }()
	return "http://" + ln.Addr().String(), func() error { cancel(); return <-done }
}

func get(t *testing.T, url string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(res.Body)
	if cerr := res.Body.Close(); err == nil {
		err = cerr
	}
	return string(body), err
}

// A stream that has no end of its own ends by itself when the server drains.
func TestServeDrains(t *testing.T) {
	t.Parallel()
	inside := make(chan struct{})
	url, stop := start(t, func(w http.ResponseWriter, r *http.Request) {
		close(inside)
		<-httpserver.Draining(r.Context())
		if _, err := io.WriteString(w, "bye"); err != nil {
			t.Error(err)
		}
	}, time.Minute)
	answer := make(chan string, 1)
	go func() {
		body, err := get(t, url)
		if err != nil {
			t.Error(err)
		}
		answer <- body
	}()
	<-inside
	if err := stop(); err != nil {
		t.Errorf("Serve = %v", err)
	}
	if got := <-answer; got != "bye" {
		t.Errorf("the running request was answered with %q", got)
	}
}

func TestServeCutsOffWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	inside := make(chan struct{})
	url, stop := start(t, func(_ http.ResponseWriter, r *http.Request) {
		close(inside)
		<-r.Context().Done() // ends when the connection is closed
	}, 20*time.Millisecond)
	failed := make(chan error, 1)
	go func() { _, err := get(t, url); failed <- err }()
	<-inside
	if err := stop(); err == nil {
		t.Error("Serve says nothing of the request that it cut off")
	}
	if err := <-failed; err == nil {
		t.Error("the request was answered")
	}
}

func TestListenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	if _, err := httpserver.Listen(t.Context(), "256.0.0.1:http"); !errs.Is(err, errs.Invalid) {
		t.Errorf("Listen = %v, want invalid", err)
	}
}

func TestDrainingOutsideARequestNeverComes(t *testing.T) {
	t.Parallel()
	if c := httpserver.Draining(context.Background()); c != nil {
		t.Errorf("Draining = %v, want nil", c)
	}
}
