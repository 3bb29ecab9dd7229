package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/chandler-fleet/chandler/test/stack"
)

// operator is an installed operator as the API shows it.
type operator struct {
	Name, Package, Version, Phase, Reason, Message, Namespace, Cluster string
}

// plan is an install plan as the API shows it.
type plan struct {
	ID, Name, Phase, Digest, Approval, Message, Namespace string
	Version                                               int64
	MissingApprovals                                      int
	Approvals                                             []struct{ By string }
	Blocked                                               *struct{ Class, Reason string }
	Bundles                                               []struct{ CSV, Reason, RequiredBy, Replaces string }
}

func (w *world) addCatalog(name, path string) {
	w.t.Helper()
	w.must(w.Post(w.ctx, "/api/v1/catalogs", map[string]any{
		"name": name, "source": map[string]any{"type": "directory", "path": path},
	}, nil))
	w.catalogReady(name)
}

func (w *world) catalogReady(name string) {
	w.t.Helper()
	w.eventually("catalog "+name+" is ready", func() (string, bool) {
		var c struct{ State, Reason string }
		w.must(w.Get(w.ctx, "/api/v1/catalogs/"+name, &c))
		return c.State + " " + c.Reason, c.State == "Ready"
	})
}

func scopePath(namespace, resource string) string {
	return fmt.Sprintf("/api/v1/clusters/%s/namespaces/%s/%s", spoke, namespace, resource)
}

// group makes the operator group of a namespace; without targets it serves its own.
func (w *world) group(namespace string, targets ...string) {
	w.t.Helper()
	if len(targets) == 0 {
		targets = []string{namespace} // two groups that serve all namespaces may not provide the same API (R-OG-35)
	}
	body := map[string]any{"name": "group", "targetNamespaces": targets}
	w.must(w.Post(w.ctx, scopePath(namespace, "operatorgroups"), body, nil))
}

// globalGroup makes an operator group that serves all namespaces.
func (w *world) globalGroup(namespace string) {
	w.t.Helper()
	w.must(w.Post(w.ctx, scopePath(namespace, "operatorgroups"), map[string]any{"name": "group"}, nil))
}

// subscription is the body of a create.
type subscription struct {
	Name        string `json:"name"`
	Package     string `json:"package"`
	Channel     string `json:"channel,omitempty"`
	Catalog     string `json:"catalog"`
	StartingCSV string `json:"startingCSV,omitempty"`
	Approval    string `json:"approval,omitempty"`
}

func (w *world) subscribe(namespace string, s subscription) {
	w.t.Helper()
	w.must(w.Post(w.ctx, scopePath(namespace, "subscriptions"), s, nil))
}

func (w *world) operators(namespace string) []operator {
	w.t.Helper()
	var list struct{ Items []operator }
	w.must(w.Get(w.ctx, "/api/v1/operators?cluster="+spoke+"&namespace="+namespace, &list))
	return list.Items
}

func (w *world) plans(namespace string) []plan {
	w.t.Helper()
	var list struct{ Items []plan }
	w.must(w.Get(w.ctx, "/api/v1/installplans?cluster="+spoke+"&namespace="+namespace, &list))
	return list.Items
}

// succeeded waits until the CSV is healthy.
func (w *world) succeeded(namespace, csv string) {
	w.t.Helper()
	w.eventually(csv+" in "+namespace+" is Succeeded", func() (string, bool) {
		return w.healthy(namespace, func(o operator) bool { return o.Name == csv })
	})
}

// healthy says whether a namespace has such an operator in Succeeded, and if not, what it has.
func (w *world) healthy(namespace string, such func(operator) bool) (string, bool) {
	w.t.Helper()
	seen := namespace + ":"
	for _, o := range w.operators(namespace) {
		if such(o) && o.Phase == "Succeeded" {
			return "", true
		}
		seen += fmt.Sprintf(" %s %s %s %s;", o.Name, o.Phase, o.Reason, o.Message)
	}
	for _, p := range w.plans(namespace) {
		seen += fmt.Sprintf(" plan %s %s %v %s;", p.Name, p.Phase, p.Blocked, p.Message)
	}
	return seen, false
}

// event is an entry of the log as the API shows it.
type event struct {
	ID, Type, Subject, Sequence, TraceParent, Stream string
	StreamVersion                                    int64
	Data                                             map[string]any
}

// events returns everything that the filter lets through.
func (w *world) events(filter string) []event { w.t.Helper(); return w.eventsAfter("", filter) }

// eventsAfter returns what the filter lets through behind a position.
func (w *world) eventsAfter(after, filter string) []event {
	w.t.Helper()
	var all []event
	for {
		var page struct {
			Items []event
			Next  string
		}
		query := "limit=500"
		if filter != "" {
			query += "&" + filter
		}
		if after != "" {
			query += "&after=" + url.QueryEscape(after)
		}
		w.must(w.Get(w.ctx, "/api/v1/events?"+query, &page))
		all = append(all, page.Items...)
		if page.Next == "" || len(page.Items) == 0 {
			return all
		}
		after = page.Next
	}
}

// refused fails if the error is no problem document, or one with another status.
func (w *world) refused(err error, status int) {
	w.t.Helper()
	var problem *stack.RefusedError
	if !errors.As(err, &problem) {
		w.t.Fatalf("got %v, want a problem with status %d", err, status)
	}
	if problem.Status != status {
		w.t.Fatalf("got status %d (%v), want %d %s", problem.Status, problem, status, http.StatusText(status))
	}
}
