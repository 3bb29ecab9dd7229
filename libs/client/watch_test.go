package client

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestWatchGoesOn: a watch that breaks off before its first bookmark begins anew, one that breaks off later goes on
// with the last bookmark, and one that the gateway ends for good is not opened again.
func TestWatchGoesOn(t *testing.T) {
	t.Parallel()
	texts := []string{
		"retry: 1000\n\nevent: ADDED\ndata: {\"name\": \"a\"}\n\n",
		"retry: 1000\n\nevent: ADDED\ndata: {\"name\": \"b\"}\n\nid: 1-7\nevent: BOOKMARK\ndata: {}\n\n" +
			": heartbeat\n\nevent: DELETED\ndata: {\"name\": \"b\"}\n\n",
		"retry: 1000\n\nevent: RESET\ndata: {}\n\nid: 1-9\nevent: BOOKMARK\ndata: {}\n\n",
		"retry: 1000\n\nevent: ERROR\ndata: {\"detail\": \"too many\"}\n\n",
	}
	c, asked := serve(t, func(n int, w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		say(t, w, texts[min(n, len(texts))-1])
	})
	var got []string
	list := NewListOperatorsRequest(&ListOperatorsParams{Cluster: "c"})
	err := c.Watch(t.Context(), list, "", func(change Change) error {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s%s", change.Type, change.Data, change.Position)))
		return nil
	}, nil)
	if err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("a watch that ended for good: %v", err)
	}
	want := `ADDED {"name": "a"}|RESET {}|ADDED {"name": "b"}|BOOKMARK {}1-7|DELETED {"name": "b"}|RESET {}|` +
		`BOOKMARK {}1-9`
	if said := strings.Join(got, "|"); said != want {
		t.Errorf("got  %s\nwant %s", said, want)
	}
	all := asked()
	if len(all) != len(texts) {
		t.Fatalf("%d connections, want %d", len(all), len(texts))
	}
	for i, last := range []string{"", "", "1-7", "1-9"} {
		r := all[i]
		if r.header.Get("Last-Event-ID") != last || r.header.Get("Accept") != "text/event-stream" ||
			!strings.Contains(r.uri, "watch=true") || !strings.Contains(r.uri, "cluster=c") {
			t.Errorf("connection %d: %s %v, want the id %q", i, r.uri, r.header, last)
		}
	}
	if list.Query.Has("watch") {
		t.Error("the request of the caller was changed")
	}
}
