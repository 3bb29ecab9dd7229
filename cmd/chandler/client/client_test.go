package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// gateway answers with what the test says and keeps what it was asked.
func gateway(t *testing.T, answer http.HandlerFunc) (*client.Client, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.URL.RequestURI())
		mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer t0ken" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	c, err := client.New(s.URL+"/", "t0ken")
	if err != nil {
		t.Fatal(err)
	}
	return c, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(asked)
	}
}

func write(t *testing.T, w io.Writer, v any) {
	t.Helper()
	if err := json.NewEncoder(w).Encode(v); err != nil {
		t.Error(err)
	}
}

func TestNewRefusesWhatIsNoAddress(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"a b", "a\n", "a\x00", "ä"} {
		if _, err := client.New("http://chandler.example", token); err == nil ||
			!strings.Contains(err.Error(), "the token contains") {
			t.Errorf("New with token %q = %v", token, err)
		}
	}
	for _, base := range []string{"", "chandler.example", "ftp://chandler.example", "http://", "://x"} {
		if _, err := client.New(base, ""); err == nil || !strings.Contains(err.Error(), "want http") {
			t.Errorf("New(%q) = %v", base, err)
		}
	}
}

func TestProblemIsOneSentence(t *testing.T) {
	t.Parallel()
	item := client.ProblemItem{
		Location: "body.package", Message: "package \"x\" is not in catalog \"y\"",
		Rule: "known-package",
	}
	for name, c := range map[string]struct {
		problem client.Problem
		want    string
	}{
		"only a title": {client.Problem{Title: "Not Found"}, "Not Found"},
		"a detail":     {client.Problem{Title: "Not Found", Detail: "no cluster \"a\""}, "no cluster \"a\""},
		"rule and place": {
			client.Problem{Detail: item.Message, Errors: []client.ProblemItem{item}},
			item.Message + " (at body.package, rule known-package)",
		},
		"place said already": {client.Problem{
			Detail: "invalid: body.package: " + item.Message,
			Errors: []client.ProblemItem{item},
		}, "invalid: body.package: " + item.Message + " (rule known-package)"},
		"several": {client.Problem{
			Detail: "invalid",
			Errors: []client.ProblemItem{item, {Message: "b"}},
		}, "invalid: " + item.String() + "; b"},
		"the server's own fault": {
			client.Problem{Status: 500, Detail: "an internal error", Request: "r1"},
			"an internal error (request r1)",
		},
	} {
		if got := c.problem.Error(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestErrorsOfTheGateway(t *testing.T) {
	t.Parallel()
	c, _ := gateway(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/proxy") {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		write(t, w, client.Problem{Title: "Not Found", Detail: "there is no cluster \"a\""})
	})
	_, err := c.Cluster(t.Context(), "a")
	if !client.IsStatus(err, http.StatusNotFound) || err.Error() != "there is no cluster \"a\"" {
		t.Errorf("Cluster = %v", err)
	}
	if _, err := c.Cluster(t.Context(), "proxy"); err == nil || !strings.Contains(err.Error(), "502") {
		t.Errorf("an answer that is no problem: %v", err)
	}
	away, err := client.New("http://127.0.0.1:1", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := away.Cluster(t.Context(), "a"); err == nil ||
		!strings.HasPrefix(err.Error(), "cannot reach Chandler at http://127.0.0.1:1: ") {
		t.Errorf("nobody listens: %v", err)
	}
}

func TestListsFollowTheirPages(t *testing.T) {
	t.Parallel()
	c, asked := gateway(t, func(w http.ResponseWriter, r *http.Request) {
		page := map[string]any{"items": []model.Cluster{{Name: "a"}}, "next": "more"}
		if r.URL.Query().Get("cursor") == "more" {
			page = map[string]any{"items": []model.Cluster{{Name: "b"}}}
		}
		write(t, w, page)
	})
	list, err := c.Clusters(t.Context(), client.Selection{State: "Connected"})
	if err != nil || len(list) != 2 || list[1].Name != "b" {
		t.Errorf("Clusters = %v, %v", list, err)
	}
	want := []string{"GET /api/v1/clusters?state=Connected", "GET /api/v1/clusters?cursor=more&state=Connected"}
	if got := asked(); !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
}

// D9: a write returns its position, and the next read of a script sees it.
func TestWritesWaitUntilListsShowThem(t *testing.T) {
	t.Parallel()
	c, asked := gateway(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.Header().Set("Chandler-Position", "1-7")
		} else {
			w.WriteHeader(http.StatusGatewayTimeout) // the lag of a list is no failure of the write
		}
		write(t, w, map[string]string{"position": "1-7"})
	})
	ref := client.Ref{Cluster: "east-1", Namespace: "ports", Name: "a/b"}
	if _, err := c.DeleteSubscription(t.Context(), ref); err != nil {
		t.Error(err)
	}
	if _, err := c.RemoveCluster(t.Context(), "east-1"); err != nil {
		t.Error(err)
	}
	if _, err := c.SetEffects(t.Context(), model.EffectsRequest{Action: "stop"}); err != nil {
		t.Error(err)
	}
	want := []string{
		"DELETE /api/v1/clusters/east-1/namespaces/ports/subscriptions/a%2Fb",
		"GET /api/v1/subscriptions?limit=1&minPosition=1-7", "DELETE /api/v1/clusters/east-1",
		"GET /api/v1/clusters?limit=1&minPosition=1-7", "POST /api/v1/effects",
	}
	if got := asked(); !slices.Equal(got, want) {
		t.Errorf("asked %q\nwant  %q", got, want)
	}
}

// The stream breaks off twice: nothing is missed and nothing told twice.
func TestFollowGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	connections := 0
	c, _ := gateway(t, func(w http.ResponseWriter, r *http.Request) {
		connections++
		from := 0
		if _, err := fmt.Sscanf(r.Header.Get("Last-Event-ID"), "1-%d", &from); err != nil &&
			r.Header.Get("Last-Event-ID") != "" {
			t.Error(err)
		}
		if connections == 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for n := from + 1; n <= from+2; n++ {
			if _, err := fmt.Fprintf(
				w, ": heartbeat\nid: 1-%d\nevent: t\ndata: {\"type\":\"t\",\ndata: \"sequence\":\"1-%d\"}\n\n", n,
				n); err != nil {
				return
			}
		}
	})
	var seen []string
	lost := 0
	enough := errors.New("enough")
	err := c.Follow(t.Context(), client.EventSelection{}, func(e model.Event) error {
		if seen = append(seen, e.Sequence); len(seen) == 4 {
			return enough
		}
		return nil
	}, func(error) { lost++ })
	if !errors.Is(err, enough) || !slices.Equal(seen, []string{"1-1", "1-2", "1-3", "1-4"}) || lost == 0 {
		t.Errorf("Follow = %v, seen %v, told of %d breaks", err, seen, lost)
	}
}

func TestFollowEndsWhenRefusedOrCancelled(t *testing.T) {
	t.Parallel()
	c, _ := gateway(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusConflict)
		write(t, w, client.Problem{Title: "Conflict", Detail: "position 9-9 is beyond the record"})
	})
	each := func(model.Event) error { return nil }
	if err := c.Follow(t.Context(), client.EventSelection{After: "9-9"}, each, nil); !client.IsStatus(
		err, http.StatusConflict) {
		t.Errorf("Follow = %v, want the refusal", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Follow(ended, client.EventSelection{}, each, nil); err != nil {
		t.Errorf("a cancelled Follow = %v", err)
	}
}

// TestListsAreKeptByWatches: a list is asked for once and then kept by its watch; what a reset names and nothing brings
// again is gone. A list that the gateway does not watch is asked for each time.
func TestListsAreKeptByWatches(t *testing.T) {
	t.Parallel()
	more := make(chan string)
	plain, asked := gateway(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Get("watch") != "true":
			_, _ = io.WriteString(w, `{"items": []}`)
		case strings.HasSuffix(r.URL.Path, "/installplans"): // an older gateway
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"status": 400, "title": "Bad Request", "detail": "unknown query parameter"}`)
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			for {
				select {
				case text := <-more:
					_, _ = io.WriteString(w, text)
					_ = http.NewResponseController(w).Flush()
				case <-r.Context().Done():
					return
				}
			}
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, watches := plain.Watching(ctx, func(err error) { t.Errorf("lost: %v", err) })
	object := func(change, namespace, name, channel string) string {
		return fmt.Sprintf("event: %s\ndata: {\"cluster\": \"c\", \"namespace\": %q, \"name\": %q, \"spec\": {\"channel\": %q}}\n\n",
			change, namespace, name, channel)
	}
	bookmark := func(at int) string {
		return fmt.Sprintf("id: 1-%d\nevent: BOOKMARK\ndata: {\"position\": \"1-%d\"}\n\n", at, at)
	}
	go func() {
		more <- object("ADDED", "n", "a", "one") + object("ADDED", "m", "b", "one") + bookmark(1)
	}()
	is := func(want string) {
		t.Helper()
		list, err := c.Subscriptions(ctx, client.Selection{Cluster: "c", Sort: "name"})
		var got []string
		for _, s := range list {
			got = append(got, s.Name+"="+s.Spec.Channel)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("got %v, %v, want %s", got, err, want)
		}
	}
	next := func(text string) {
		t.Helper()
		more <- text
		<-watches.Changed()
	}
	is("a=one b=one")
	<-watches.Changed()
	next(object("MODIFIED", "n", "a", "two") + object("ADDED", "n", "c", "one") + bookmark(2))
	is("a=two b=one c=one")
	next(object("DELETED", "m", "b", "") + bookmark(3))
	is("a=two c=one")
	next("event: RESET\ndata: {}\n\n" + object("ADDED", "n", "c", "three") + bookmark(4))
	is("c=three")
	if n := len(asked()); n != 1 || watches.Refused() {
		t.Errorf("%d requests: %v", n, asked())
	}
	for range 2 {
		if _, err := c.InstallPlans(ctx, client.Selection{}); err != nil {
			t.Error(err)
		}
	}
	if n := len(asked()); n != 4 || !watches.Refused() {
		t.Errorf("a list that is not watched: %v", asked())
	}
}
