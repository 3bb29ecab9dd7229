package client_test

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
)

// TestListsWithoutAWatchAreAskedFor: a list does not wait for a watch that finds no place, that the gateway ends for
// good, or that is silent; it is asked for, and kept by its watch once there is one.
func TestListsWithoutAWatchAreAskedFor(t *testing.T) {
	t.Parallel()
	const bookmark = "id: 1-1\nevent: BOOKMARK\ndata: {\"position\": \"1-1\"}\n\n"
	for _, c := range []struct {
		name    string
		refuse  func(w http.ResponseWriter)
		returns bool // the watch is opened again
	}{
		{"no place", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"status": 429, "title": "Too Many Requests", "detail": "32 streams are open"}`)
		}, true},
		{"too many objects", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "event: ERROR\ndata: {\"detail\": \"more than 2 objects\"}\n\n")
		}, false},
		{"silence", func(w http.ResponseWriter) { // of a proxy that keeps the stream to itself
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			<-time.After(time.Second) // many times what the list waits
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var place atomic.Bool
			plain, _ := gateway(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Query().Get("watch") != "true":
					_, _ = io.WriteString(w, `{"items": [{"cluster": "c", "namespace": "n", "name": "asked-for"}]}`)
				case !place.Load():
					c.refuse(w)
				default:
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, bookmark)
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second) // less than a list waits in silence
			defer cancel()
			watching, watches := plain.Watching(ctx, func(err error) { t.Errorf("lost: %v", err) })
			if c.name == "silence" {
				watches.SetFirstWait(50 * time.Millisecond)
			}
			list, err := watching.Subscriptions(ctx, client.Selection{})
			if err != nil || len(list) != 1 || !watches.Refused() {
				t.Fatalf("without a watch: %v, %v, asked for: %v", list, err, watches.Refused())
			}
			if !c.returns {
				return
			}
			place.Store(true)
			for watches.Refused() {
				select {
				case <-watches.Changed():
				case <-ctx.Done():
					t.Fatal("the watch did not come")
				}
			}
			if list, err = watching.Subscriptions(ctx, client.Selection{}); err != nil || len(list) != 0 {
				t.Errorf("with a watch: %v, %v", list, err)
			}
		})
	}
}
