package kube

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/answers"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// cluster is an API server that does as it likes, or one that answers well.
func cluster(t *testing.T, serve http.HandlerFunc) *Base {
	t.Helper()
	server := httptest.NewUnstartedServer(serve)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	base, err := NewBase(&rest.Config{
		Host: server.URL, BearerToken: "s3cr3t", TLSClientConfig: rest.TLSClientConfig{CAData: caOf(server)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return base
}

func healthy(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, `{"gitVersion": "v1.34.0"}`)
}

// zeros writes so many bytes of a kind as they become large from few.
func zeros(w io.Writer, n int) {
	chunk := []byte(strings.Repeat(" ", 1<<20))
	for range n >> 20 {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// What a cluster answers is bounded before it is decompressed and after, whatever it is asked for: an answer that is no
// end costs its connection, and some mebibytes, while other clusters are served beside it.
func TestAnswersAreBounded(t *testing.T) {
	const gibibyte = 1 << 30
	compressed := func(w http.ResponseWriter) (io.Writer, func()) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/json")
		gz := gzip.NewWriter(w)
		return gz, func() { _ = gz.Close() }
	}
	bomb := func(w http.ResponseWriter, _ *http.Request) {
		to, end := compressed(w)
		defer end()
		zeros(to, gibibyte)
	}
	endless := func(w http.ResponseWriter, _ *http.Request) { zeros(w, gibibyte) }
	version := func(ctx context.Context, b *Base) error {
		_, err := b.Version(ctx)
		return err
	}
	get := func(ctx context.Context, b *Base) error {
		_, err := b.Dynamic.Resource(configMaps).Namespace("ns").Get(ctx, "x", metav1.GetOptions{})
		return err
	}
	list := func(ctx context.Context, b *Base) error {
		_, err := b.Dynamic.Resource(configMaps).List(ctx, metav1.ListOptions{})
		return err
	}
	beside := cluster(t, healthy)
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		do    func(context.Context, *Base) error
		most  uint64 // bytes that may be allocated at a time
	}{
		"a bomb for the version": {bomb, version, 64 << 20},
		"a bomb for an object":   {bomb, get, 128 << 20},
		"a bomb for a list":      {bomb, list, 128 << 20},
		"an endless version":     {endless, version, 64 << 20},
		"an endless object":      {endless, get, 128 << 20},
		"an endless refusal": {
			func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusForbidden); endless(w, r) },
			list, 64 << 20,
		},
		"an encoding nobody wanted": {
			func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "br") }, version,
			64 << 20,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := cluster(t, c.serve)
			done, peak := make(chan error, 1), heapNow()
			start := peak
			go func() { done <- c.do(t.Context(), b) }()
			for {
				var err error
				select {
				case err = <-done:
				case <-time.After(20 * time.Millisecond):
					peak = max(peak, heapNow())
					if _, err := beside.Version(t.Context()); err != nil {
						t.Fatalf("another cluster: %v", err)
					}
					continue
				}
				if err == nil {
					t.Error("it was read to its end")
				}
				if grown := peak - start; peak > start && grown > c.most {
					t.Errorf("%d MiB were allocated", grown>>20)
				}
				if held := open(b).Held(); held != 0 {
					t.Errorf("%d bytes are still held against the cluster", held)
				}
				break
			}
			if _, err := beside.Version(t.Context()); err != nil {
				t.Errorf("another cluster: %v", err)
			}
		})
	}
}

func heapNow() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func open(b *Base) *answers.Transport {
	return b.config.Transport.(*answers.Transport)
}

// A credential goes with every request, so no answer may lead it elsewhere.
func TestNoAnswerSendsTheCredentialOn(t *testing.T) {
	t.Parallel()
	var asked atomic.Bool
	thief := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }))
	t.Cleanup(thief.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		b := cluster(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/else" {
				asked.Store(true)
			}
			w.Header().Set("Location", thief.URL)
			w.WriteHeader(status)
		})
		if _, err := b.Version(t.Context()); !errs.Is(err, errs.Forbidden) {
			t.Errorf("status %d: %v", status, err)
		}
	}
	if asked.Load() {
		t.Error("the credential was sent on")
	}
}

// A compressed answer that is what it should be is read, and so is one from below a path.
func TestGoodAnswersAreRead(t *testing.T) {
	t.Parallel()
	b := cluster(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			t.Errorf("asked for encoding %q", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/json")
		gz := gzip.NewWriter(w)
		defer func() { _ = gz.Close() }()
		var items []any
		for i := range 20000 {
			items = append(items, map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprintf("alike-%d", i)},
				"data": map[string]any{"same": strings.Repeat("same ", 40)},
			})
		}
		_ = json.NewEncoder(gz).Encode(map[string]any{"apiVersion": "v1", "kind": "ConfigMapList", "items": items})
	})
	l, err := b.Dynamic.Resource(configMaps).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(l.Items) != 20000 {
		t.Fatalf("%v", err)
	}
	if held := open(b).Held(); held != 0 {
		t.Errorf("%d bytes are still held", held)
	}
	for path, want := range map[string]int64{
		"/version": answers.Small, "/api/v1/pods": answers.List, "/api/v1/namespaces/a/pods": answers.List,
		"/api/v1/namespaces/a": answers.One, "/api/v1/namespaces/a/pods/b": answers.One, "/apis": answers.List,
		"/apis/apps/v1/namespaces/a/deployments": answers.List, "/apis/apps/v1/namespaces/a/deployments/b": answers.One,
		"/k8s/clusters/c-1/api/v1/pods": answers.List, "/k8s/clusters/c-1/version": answers.Small,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		if most := open(b).Most(r); most != want {
			t.Errorf("%s: %d bytes, want %d", path, most, want)
		}
	}
}

// One event of a watch is bounded, in either form, and so is the time that it takes; a silent watch goes on.
func TestEventsOfWatchesAreBounded(t *testing.T) {
	t.Parallel()
	event := `{"type": "ADDED", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a\"}"}}}`
	for name, c := range map[string]struct {
		kind  string
		serve func(w http.ResponseWriter, gone <-chan struct{})
		first bool // an event comes before the end
	}{
		"an endless event": {"application/json", func(w http.ResponseWriter, _ <-chan struct{}) {
			_, _ = io.WriteString(w, event+"\n"+`{"type": "ADDED", "object": {"x": "`+"\n")
			zeros(w, 1<<30)
		}, true},
		"an endless frame": {"application/vnd.kubernetes.protobuf;stream=watch", func(
			w http.ResponseWriter, _ <-chan struct{},
		) {
			_, _ = w.Write([]byte{0x7f, 0, 0, 0})
			zeros(w, 1<<30)
		}, false},
		"an event that comes slowly": {"application/json", func(w http.ResponseWriter, gone <-chan struct{}) {
			_, _ = io.WriteString(w, event)
			for {
				if _, err := io.WriteString(w, "["); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				select {
				case <-gone:
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := cluster(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				w.WriteHeader(http.StatusOK)
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
					return
				case <-time.After(300 * time.Millisecond): // silent for longer than an event may take
				}
				c.serve(w, r.Context().Done())
			})
			open(b).Event = 200 * time.Millisecond
			e, err := b.InEpoch(1)
			if err != nil {
				t.Fatal(err)
			}
			start := e.Dynamic.Resource(configMaps).Watch
			if strings.Contains(c.kind, "protobuf") {
				start = e.Metadata.Resource(configMaps).Watch
			}
			w, err := start(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			added := 0
			limit := time.After(30 * time.Second)
			for {
				select {
				case e, ok := <-w.ResultChan():
					if ok && e.Type == watch.Added {
						added++
					}
					if ok {
						continue
					}
				case <-limit:
					t.Fatal("the watch goes on")
				}
				break
			}
			if (added == 1) != c.first {
				t.Errorf("%d events", added)
			}
		})
	}
}

// An answer that comes byte by byte ends with its time, also where the caller has set none.
func TestSlowAnswersEnd(t *testing.T) {
	t.Parallel()
	b := cluster(t, func(w http.ResponseWriter, r *http.Request) {
		for {
			_, _ = io.WriteString(w, " ")
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	open(b).Answer = 300 * time.Millisecond
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.config.Host+"/api/v1/pods", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := open(b).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func caOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}
