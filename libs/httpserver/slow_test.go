package httpserver

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// slowLimit bounds how long a test waits for a connection to be closed.
const slowLimit = 30 * time.Second

// slowServer serves h with times that are short enough for a test.
func slowServer(t *testing.T, h http.HandlerFunc) (address string) {
	t.Helper()
	ln, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	const short = 100 * time.Millisecond
	go func() { done <- serve(ctx, ln, h, time.Second, timeouts{header: short, write: short, idle: short}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Log(err) // an answer that nobody reads is cut off
		}
	})
	return ln.Addr().String()
}

// say opens a connection and writes to it.
func say(t *testing.T, address, text string) net.Conn {
	t.Helper()
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(slowLimit)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// answered is what the server writes until it closes the connection.
func answered(t *testing.T, c net.Conn) string {
	t.Helper()
	said, err := io.ReadAll(c)
	if nerr, ok := err.(net.Error); ok && nerr.Timeout() { //nolint:errorlint // of the connection itself
		t.Fatalf("the connection is still open after %s", slowLimit)
	}
	return string(said)
}

const hello = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

// TestSlowClientsAreBounded: slow and hostile clients hold nothing for long, and nobody else waits for them (issue 13,
// §5).
func TestSlowClientsAreBounded(t *testing.T) {
	t.Parallel()
	address := slowServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	const many = 200
	var half, idle []net.Conn
	for range many {
		half = append(half, say(t, address, "GET / HTTP/1.1\r\nHost:"))
		idle = append(idle, say(t, address, ""))
	}
	kept := say(t, address, hello)
	beside := say(t, address, strings.Replace(hello, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1))
	if got := answered(t, beside); !strings.HasSuffix(got, "hello") {
		t.Errorf("beside %d slow clients another one was answered %q", 2*many, got)
	}
	for _, c := range append(half, idle...) {
		if got := answered(t, c); strings.Contains(got, "hello") {
			t.Fatalf("half a request was answered %q", got)
		}
	}
	if got := answered(t, kept); strings.Count(got, "hello") != 1 {
		t.Errorf("a kept connection was answered %q", got)
	}
}

// TestOversizedHeadersAreRefused: what does not end is not read.
func TestOversizedHeadersAreRefused(t *testing.T) {
	t.Parallel()
	address := slowServer(t, func(http.ResponseWriter, *http.Request) { t.Error("it was let in") })
	c := say(t, address, "GET / HTTP/1.1\r\nHost: h\r\nX: "+strings.Repeat("x", 2*maxHeaderBytes))
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || !strings.Contains(line, " 431 ") {
		t.Errorf("answered %q, %v; want 431", line, err)
	}
}

// TestAnswersThatNobodyReadsAreCutOff: the write fails instead of holding what it writes.
func TestAnswersThatNobodyReadsAreCutOff(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 1)
	large := make([]byte, 64<<20) // more than the buffers between two processes hold
	address := slowServer(t, func(w http.ResponseWriter, _ *http.Request) {
		_, err := w.Write(large)
		failed <- err
	})
	say(t, address, hello)
	select {
	case err := <-failed:
		if err == nil {
			t.Error("everything was written, and nobody had read")
		}
	case <-time.After(slowLimit):
		t.Error("the write goes on")
	}
}

// TestStreamsOutliveTheTimeOfAnAnswer: a stream that gives its writes a time of their own goes on.
func TestStreamsOutliveTheTimeOfAnAnswer(t *testing.T) {
	t.Parallel()
	address := slowServer(t, func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for range 6 { // thrice the time of an answer
			select {
			case <-tick.C:
			case <-r.Context().Done():
				t.Error("the request has ended")
				return
			}
			_ = rc.SetWriteDeadline(time.Now().Add(slowLimit))
			_, _ = io.WriteString(w, "tick ")
			if err := rc.Flush(); err != nil {
				t.Error(err)
			}
		}
	})
	c := say(t, address, strings.Replace(hello, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1))
	if got := strings.Count(answered(t, c), "tick"); got != 6 {
		t.Errorf("%d of 6 parts arrived", got)
	}
}
