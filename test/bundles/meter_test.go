package bundles_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// usage is what an API server has used since it started.
type usage struct {
	cpu      float64 // seconds
	resident float64 // bytes, now
	requests tally   // of all clients
}

func (u usage) minus(v usage) usage {
	requests := tally{}
	for what, n := range u.requests {
		requests[what] = n - v.requests[what]
	}
	return usage{cpu: u.cpu - v.cpu, resident: u.resident, requests: requests}
}

func (u usage) plus(v usage) usage {
	requests := tally{}
	for _, one := range []tally{u.requests, v.requests} {
		for what, n := range one {
			requests[what] += n
		}
	}
	return usage{cpu: u.cpu + v.cpu, resident: u.resident + v.resident, requests: requests}
}

// tally counts requests by verb and resource.
type tally map[string]float64

// String lists the most frequent ones first.
func (t tally) String() string {
	keys := slices.SortedFunc(maps.Keys(t), func(a, b string) int {
		return cmp.Or(
			cmp.Compare(t[b], t[a]), strings.Compare(a, b))
	})
	var out []string
	for _, what := range keys {
		if t[what] > 0 {
			out = append(out, fmt.Sprintf("%s %.0f", what, t[what]))
		}
	}
	return strings.Join(out, ", ")
}

// usageOf reads the API server's own metrics.
func usageOf(ctx context.Context, kube kubernetes.Interface) (u usage, err error) {
	u.requests = tally{}
	raw, err := kube.Discovery().RESTClient().Get().AbsPath("/metrics").Do(ctx).Raw()
	if err != nil {
		return u, err
	}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if !ok || !slices.ContainsFunc([]string{"process_cpu", "process_resident", requestTotal},
			func(of string) bool { return strings.HasPrefix(name, of) }) {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return u, fmt.Errorf("metric %s: %w", name, err)
		}
		switch {
		case name == "process_cpu_seconds_total":
			u.cpu = n
		case name == "process_resident_memory_bytes":
			u.resident = n
		case strings.HasPrefix(name, requestTotal):
			what := label(name, "verb") + " " + label(name, "resource")
			if sub := label(name, "subresource"); sub != "" {
				what += "/" + sub
			}
			u.requests[what] += n
		}
	}
	return u, lines.Err()
}

// requestTotal begins the lines that count the API server's requests.
const requestTotal = "apiserver_request_total{"

// label returns the value of a label, but for the first one, of a metric.
func label(metric, name string) string {
	_, rest, _ := strings.Cut(metric, ","+name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

const (
	quietEvery = 500 * time.Millisecond
	quietShare = 0.15 // of a processor
	quietLimit = 30 * time.Second
)

// settled reads the usage once the API server works no longer on what was given to it, such as its OpenAPI
// document: what an install sets off is a part of what it costs.
func settled(tb testing.TB, kube kubernetes.Interface) usage {
	tb.Helper()
	tick := time.NewTicker(quietEvery)
	defer tick.Stop()
	last, err := usageOf(tb.Context(), kube)
	must(tb, err)
	for end := time.Now().Add(quietLimit); time.Now().Before(end); {
		<-tick.C
		now, err := usageOf(tb.Context(), kube)
		must(tb, err)
		if now.cpu-last.cpu < quietShare*quietEvery.Seconds() {
			return now
		}
		last = now
	}
	tb.Logf("the API server was still busy %s after the end", quietLimit)
	return last
}

// traffic counts the requests of one client by verb and resource.
type traffic struct {
	mu sync.Mutex
	by tally
	n  int
}

// config returns a configuration whose requests are counted.
func (t *traffic) config(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			t.note(r)
			return next.RoundTrip(r)
		})
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (t *traffic) note(r *http.Request) {
	verb := r.Method
	if r.URL.Query().Get("watch") != "" {
		verb = "WATCH"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = tally{}
	}
	t.by[verb+" "+resourceIn(r.URL.Path)]++
	t.n++
}

// resourceIn takes the resource, and the subresource, out of a path of the Kubernetes API.
func resourceIn(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return path
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	if len(parts) > 2 {
		return parts[0] + "/" + parts[2]
	}
	return parts[0]
}

func (t *traffic) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n
}

// tally is what was counted so far.
func (t *traffic) tally() tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.by)
}
