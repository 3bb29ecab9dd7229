package executor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// fault is one way in which a request to the API server goes wrong.
type fault struct {
	name string
	do   func(w http.ResponseWriter, r *http.Request, forward http.Handler)
	// rare faults befall each kind of request once, not each object: they take their time.
	rare bool
}

// refuses answers with a status of the Kubernetes API, and the request has no effect.
func refuses(name string, code int, reason metav1.StatusReason) fault {
	return fault{name: name, do: func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		body, err := json.Marshal(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Code: int32(code), Reason: reason, Message: "fault of the test: " + name,
		})
		if err != nil {
			panic(err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write(body) // nobody may be listening any more
	}}
}

// cuts ends the connection before the request has its effect.
func cuts(name string) fault {
	return fault{name: name, do: func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }}
}

// loses lets the request have its effect and ends the connection instead of an answer.
func loses(name string) fault {
	return fault{name: name, do: func(_ http.ResponseWriter, r *http.Request, forward http.Handler) {
		forward.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}}
}

// tears lets the request have its effect and ends the connection in the middle of the answer.
func tears(name string) fault {
	return fault{name: name, do: func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		answer := httptest.NewRecorder()
		forward.ServeHTTP(answer, r)
		w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
		panic(http.ErrAbortHandler)
	}}
}

// hangs keeps the request until the client gives up; it has its effect after that.
func hangs(name string) fault {
	return fault{name: name, rare: true, do: func(_ http.ResponseWriter, r *http.Request, forward http.Handler) {
		<-r.Context().Done()
		forward.ServeHTTP(httptest.NewRecorder(), r.Clone(context.WithoutCancel(r.Context())))
	}}
}

// drags answers late, as an API server does whose etcd is slow.
func drags(name string, by time.Duration) fault {
	return fault{name: name, do: func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		select {
		case <-time.After(by):
			forward.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}}
}

// proxy stands between an executor and its API server. The request that befalls a fault has the fault's name in its
// path or its body, so that lives under different faults share a cluster and an executor.
type proxy struct {
	server  *httptest.Server
	forward *httputil.ReverseProxy
	faults  []fault

	mu     sync.Mutex
	tries  map[string]int      // by fault, method and path
	struck map[string][]string // method and path by fault
}

func newProxy(t *testing.T, config *rest.Config, faults ...fault) *proxy {
	t.Helper()
	target, err := url.Parse(config.Host)
	must(t, err)
	transport, err := rest.TransportFor(config)
	must(t, err)
	p := &proxy{faults: faults, tries: map[string]int{}, struck: map[string][]string{}}
	p.forward = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = httptest.NewUnstartedServer(p)
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.server.Start()
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

// config reaches the API server through the proxy, as its administrator.
func (p *proxy) config() *rest.Config { return &rest.Config{Host: p.server.URL} }

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if f, ok := p.strike(r, body); ok {
		f.do(w, r, p.forward)
		return
	}
	p.forward.ServeHTTP(w, r)
}

// strike chooses the fault that befalls a request, if one does: a read at its first try, a write also at its third and
// sixth, so that each step is met, the writes of a log in several of its states, and everything ends.
func (p *proxy) strike(r *http.Request, body []byte) (fault, bool) {
	if r.URL.Query().Get("watch") != "" {
		return fault{}, false
	}
	i := slices.IndexFunc(p.faults, func(f fault) bool {
		return strings.Contains(r.URL.Path, f.name) || bytes.Contains(body, []byte(f.name))
	})
	if i < 0 {
		return fault{}, false
	}
	f, what := p.faults[i], r.Method+" "+r.URL.Path
	if f.rare {
		what = r.Method + " " + kindOfPath(r.URL.Path)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tries[f.name+" "+what]++
	switch n := p.tries[f.name+" "+what]; {
	case n == 1:
	case r.Method != http.MethodGet && !f.rare && (n == 3 || n == 6):
	default:
		return fault{}, false
	}
	p.struck[f.name] = append(p.struck[f.name], what)
	return f, true
}

// kindOfPath is a path of the Kubernetes API without the names of its objects.
func kindOfPath(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	start := 2 // api/v1
	if parts[0] == "apis" {
		start = 3
	}
	for i := start + 1; i < len(parts); i += 2 {
		parts[i] = "*"
	}
	return strings.Join(parts, "/")
}

// hits are the requests that a fault befell.
func (p *proxy) hits(name string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.struck[name])
}
