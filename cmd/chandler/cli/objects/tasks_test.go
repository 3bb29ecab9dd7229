package objects

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/documents"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestApplyAtOnce proves that documents are applied maxAtOnce at a time and no more, each kind after what it needs,
// that documents about one thing keep their order, and that results stand in the order of the documents. The server
// counts: it answers the first writes of subscriptions when maxAtOnce of them are there.
func TestApplyAtOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var writes []string
	waiting, most, settled := 0, 0, 0
	full := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, "/api/v1")
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodGet && strings.HasPrefix(path, "/clusters/west/namespaces"),
			r.Method == http.MethodGet && strings.HasPrefix(path, "/catalogs/"):
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"title": "Not Found"}`)
			return
		case r.Method == http.MethodGet:
			mu.Lock()
			if r.URL.Query().Get("minPosition") != "" {
				settled++
			}
			mu.Unlock()
			fmt.Fprint(w, `{"items": []}`)
			return
		}
		mu.Lock()
		n := len(writes)
		writes = append(writes, path)
		waiting++
		most = max(most, waiting)
		if waiting == maxAtOnce {
			close(full)
		}
		mu.Unlock()
		if strings.HasSuffix(path, "/subscriptions") {
			select {
			case <-full:
			case <-t.Context().Done():
			}
		}
		mu.Lock()
		waiting--
		mu.Unlock()
		w.Header().Set("Chandler-Position", fmt.Sprintf("1-%d", n+1))
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{}`)
	}))
	t.Cleanup(server.Close)

	var in, want strings.Builder
	for i := range maxAtOnce { // more would wait in vain: the rest comes after the first are through
		fmt.Fprintf(
			&in,
			"---\napiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: s%d, namespace: "+
				"ns%d}\nspec: {name: a, source: own, sourceNamespace: ns}\n", i, i)
		fmt.Fprintf(&want, "subscription/west/ns%d/s%d created\n", i, i)
	}
	in.WriteString(
		"---\napiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: g, namespace: ns0}\n")
	want.WriteString("operatorgroup/west/ns0/g created\n")
	in.WriteString(
		"---\napiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nmetadata: {name: own, namespace: " +
			"ns}\nspec: {sourceType: grpc, image: a/b}\n")
	want.WriteString("catalog/west/ns/own created\n")
	var out, errOut bytes.Buffer
	a := &command.Env{
		Streams: command.Streams{
			In: strings.NewReader(in.String()), Out: &out, Err: &errOut, Now: time.Now,
			Env: func(string) (string, bool) { return "", false },
		},
		URL: server.URL, Token: "t",
	}
	if err := apply(t.Context(), a, applyOptions{
		Options: documents.Options{Files: []string{"-"}, Clusters: []string{"west"}},
	}); err != nil {
		t.Fatal(err)
	}
	if out.String() != want.String() {
		t.Errorf("told\n%swant\n%s", out.String(), want.String())
	}
	if errOut.Len() > 0 {
		t.Errorf("no terminal is told %q", errOut.String())
	}
	if most != maxAtOnce {
		t.Errorf("%d at a time, want %d", most, maxAtOnce)
	}
	if len(writes) < 2 || writes[0] != "/catalogs" || !strings.HasSuffix(writes[1], "/operatorgroups") ||
		slices.ContainsFunc(writes[2:], func(p string) bool { return !strings.HasSuffix(p, "/subscriptions") }) {
		t.Errorf("written in the order %q", writes)
	}
	if settled != 3 {
		t.Errorf("lists were waited for %d times, want once for each of three", settled)
	}
}

// TestApplyAgainstOthers: what somebody else changes between the read and the write of a document is not lost unseen:
// the document is compared again, and wins, or finds that nothing is to be done.
func TestApplyAgainstOthers(t *testing.T) {
	t.Parallel()
	policy := func(version int) string {
		return fmt.Sprintf(`{"stream": "policy:0b0e7b0c-0000-5000-8000-000000000000:1", "version": %d}`, version)
	}
	version, wanted := 3, []string{}
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			fmt.Fprint(w, policy(version))
			return
		}
		wanted = append(wanted, r.Header.Get("If-Match"))
		if version < 5 { // somebody is faster, twice
			version++
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusPreconditionFailed)
			fmt.Fprint(w, `{"title": "Precondition Failed"}`)
			return
		}
		version++
		fmt.Fprint(w, policy(version))
	}))
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, "t")
	if err != nil {
		t.Fatal(err)
	}
	out := settle(t.Context(), c, task{diff: func(ctx context.Context, c *client.Client) (comparison, error) {
		return comparePolicy(ctx, c, "careful",
			model.SetApprovalPolicy{Metadata: model.Metadata{Labels: map[string]string{"app": "x"}}})
	}})
	if want := []string{`"1.3"`, `"1.4"`, `"1.5"`}; out.err != nil || out.did != configured ||
		!slices.Equal(wanted, want) {
		t.Errorf("%q, %v, after If-Match %v, want %v", out.did, out.err, wanted, want)
	}
}
