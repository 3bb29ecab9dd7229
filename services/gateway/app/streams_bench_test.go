package app_test

import (
	"bufio"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/services/gateway/app"
)

// openStreams is how many clients the goal of issue 13 speaks of.
const openStreams = 1000

// BenchmarkStreams opens 1,000 event streams of one gateway, which may take 150 MB, and measures how long an event
// takes from the answer to its write to the last of them. The clients are connections of the same process, and read
// into buffers of 4 kB.
func BenchmarkStreams(b *testing.B) {
	g := setupWith(b, func(c *app.Config) { c.Limits.Streams, c.Limits.OwnStreams = openStreams, openStreams })
	g.cluster("first") // connections and caches exist before memory is measured
	before := memory()
	request := "GET /api/v1/events/stream?type=cluster.registered.v1 HTTP/1.1\r\nHost: gateway\r\nAccept: text/event-stream\r\n" +
		"Authorization: Bearer " + token + "\r\n\r\n"
	seen := make(chan error, openStreams)
	for range openStreams {
		conn, err := (&net.Dialer{}).DialContext(b.Context(), "tcp", strings.TrimPrefix(g.url, "http://"))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = conn.Close() })
		if _, err := conn.Write([]byte(request)); err != nil {
			b.Fatal(err)
		}
		lines := bufio.NewScanner(conn)
		for lines.Scan() && lines.Text() != "" { // the head of the answer
			if text := lines.Text(); strings.HasPrefix(text, "HTTP/") && !strings.Contains(text, " 200 ") {
				b.Fatal(text)
			}
		}
		go func() {
			for lines.Scan() {
				if strings.HasPrefix(lines.Text(), "data:") {
					seen <- nil
				}
			}
			seen <- fmt.Errorf("a stream has ended: %w", lines.Err())
		}()
	}
	opened := memory()
	var took []time.Duration
	n := 0
	for b.Loop() {
		n++
		g.cluster(fmt.Sprintf("spoke-%d", n))
		begin := time.Now()
		for range openStreams {
			if err := <-seen; err != nil && b.Context().Err() == nil {
				b.Fatal(err)
			}
		}
		took = append(took, time.Since(begin))
	}
	b.ReportMetric(float64(opened-before)/1e6, "MB")
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-to-all-p50")
}

// memory is what lives on the heap and the stacks, after a collection.
func memory() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
