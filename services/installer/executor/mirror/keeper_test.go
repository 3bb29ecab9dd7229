package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/watch"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

// shelf is an API server with at most one object, and what was done to it.
type shelf struct {
	t    *testing.T
	live *unstructured.Unstructured
	did  []string
}

func (s *shelf) keeper() *Keeper {
	server := httptest.NewServer(s)
	s.t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		s.t.Fatal(err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		s.t.Fatal(err)
	}
	return New(Config{
		Client: &kube.Epoch{Dynamic: objects, Metadata: meta}, Log: slog.New(slog.DiscardHandler),
		At: func(string) error { return nil },
	})
}

// ServeHTTP implements http.Handler.
func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	switch r.Method {
	case http.MethodPatch:
		s.did = append(s.did, s.patched(r, body))
		if s.live == nil {
			s.live = made("fresh", manager)
		}
	case http.MethodDelete:
		var o metav1.DeleteOptions
		if err := json.Unmarshal(body, &o); err != nil || o.Preconditions == nil {
			s.t.Errorf("delete with %s, %v", body, err)
			break
		}
		s.did = append(s.did, fmt.Sprint("delete ", *o.Preconditions.UID))
	}
	w.Header().Set("Content-Type", "application/json")
	answer := s.live
	if answer == nil {
		w.WriteHeader(http.StatusNotFound)
		answer = &unstructured.Unstructured{Object: map[string]any{
			"kind": "Status", "apiVersion": "v1",
			"status": "Failure", "reason": "NotFound", "code": int64(http.StatusNotFound),
		}}
	} else if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
		answer = &unstructured.Unstructured{Object: map[string]any{
			"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": s.live.Object["metadata"],
		}}
	}
	if err := json.NewEncoder(w).Encode(answer.Object); err != nil {
		s.t.Error(err)
	}
}

// patched says what a patch does.
func (s *shelf) patched(r *http.Request, patch []byte) string {
	if r.Header.Get("Content-Type") == string(types.JSONPatchType) {
		var ops []struct {
			Op, Path string
			Value    any
		}
		if err := json.Unmarshal(patch, &ops); err != nil || len(ops) != 2 {
			s.t.Fatalf("status: %s, %v", patch, err)
		}
		return fmt.Sprint("status, ", ops[0].Op, " ", ops[0].Path, " ", ops[0].Value)
	}
	var body unstructured.Unstructured
	if err := json.Unmarshal(patch, &body.Object); err != nil {
		s.t.Error(err)
	}
	if about, ok := body.Object["involvedObject"].(map[string]any); ok {
		return fmt.Sprint("Event ", body.Object["reason"], " of ", about["kind"], " ", about["name"], ", uid ",
			about["uid"])
	}
	return fmt.Sprint("apply, force ", r.URL.Query().Get("force"), ", uid ", body.GetUID())
}

// made is a mirror's object with a UID, written by a field manager.
func made(uid, by string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"version": "0"}}}
	o.SetGroupVersionKind(mirror.GVKCSV)
	o.SetNamespace("ops")
	o.SetName("tide.v1")
	o.SetUID(types.UID(uid))
	o.SetLabels(map[string]string{mirror.LabelMirror: "ops"})
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: by}})
	return o
}

func wanted() Wanted {
	return Wanted{
		Key: Key{GVK: mirror.GVKCSV, Namespace: "ops", Name: "tide.v1"}, Body: "b", Status: "s",
		Build: func(context.Context) (mirror.Object, error) {
			return mirror.Object{Body: map[string]any{
				"metadata": map[string]any{"name": "tide.v1"},
				"spec":     map[string]any{"version": "1"},
			}, Status: map[string]any{"phase": "Succeeded"}}, nil
		},
	}
}

// TestKeepTouchesItsOwn: an object is taken back by force where the mirrors' manager made it, and it must be the one
// that was looked at; nothing is taken from anybody else, label or not, and that is said.
func TestKeepTouchesItsOwn(t *testing.T) {
	t.Parallel()
	unlabelled := made("u", manager)
	unlabelled.SetLabels(nil)
	for name, c := range map[string]struct {
		live *unstructured.Unstructured
		want string // what is done; "" is nothing, and an error that says so
	}{
		"none":                     {nil, "apply, force false, uid ; status, test /metadata/uid fresh"},
		"its own":                  {made("u", manager), "apply, force true, uid u; status, test /metadata/uid u"},
		"OLM's, or a person's":     {unlabelled, ""},
		"one that bears its label": {made("u", "kubectl"), ""},
	} {
		s := &shelf{t: t, live: c.live}
		_, err := s.keeper().Keep(t.Context(), "ops", []Wanted{wanted()})
		if got := strings.Join(s.did, "; "); got != c.want {
			t.Errorf("%s: did %q, want %q", name, got, c.want)
		}
		if (err != nil) != (c.want == "") || err != nil &&
			!strings.Contains(err.Error(), "ClusterServiceVersion ops/tide.v1: an object of somebody else") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRemoveTouchesItsOwn: what bears the label of a mirror goes only if it is one.
func TestRemoveTouchesItsOwn(t *testing.T) {
	t.Parallel()
	for by, want := range map[string]string{manager: "delete u", "kubectl": ""} {
		s := &shelf{t: t, live: made("u", by)}
		k := s.keeper()
		k.Changed(watch.Change{GVK: mirror.GVKCSV, Namespace: "ops", Name: "tide.v1", Owner: "ops", UID: "u"})
		_, err := k.Keep(t.Context(), "ops", nil)
		if got := strings.Join(s.did, "; "); got != want || (err != nil) != (want == "") {
			t.Errorf("made by %s: did %q, %v", by, got, err)
		}
	}
}

// TestCopiesAreToldOfTheMirror: R-CFG-2: the Event that an operator is not copied bears the UID of the
// ClusterServiceVersion that it names, and is reported when that is there.
func TestCopiesAreToldOfTheMirror(t *testing.T) {
	t.Parallel()
	s := &shelf{t: t}
	k := s.keeper()
	i := Installed{UID: "installed", Operator: mirror.Operator{Namespace: "ops", Name: "tide.v1"}}
	tell := func() {
		t.Helper()
		if err := k.NotifyCopies(t.Context(), i, mirror.CopiesDisabled, eventTime); err != nil {
			t.Fatal(err)
		}
	}
	tell()
	if len(s.did) > 0 {
		t.Errorf("told before the mirror is there: %q", s.did)
	}
	if _, err := k.Keep(t.Context(), "ops", []Wanted{wanted()}); err != nil {
		t.Fatal(err)
	}
	s.live, s.did = nil, nil // there is no Event yet
	tell()
	tell()
	if want := "Event DisabledCopiedCSVs of ClusterServiceVersion tide.v1, uid fresh"; strings.Join(
		s.did, "; ") != want {
		t.Errorf("did %q, want %q", s.did, want)
	}
}

// TestGoneUnseen: a mirror that went before its kind was watched is written again once the kind was listed, though
// nobody told that it is gone; one that the list showed is left alone.
func TestGoneUnseen(t *testing.T) {
	t.Parallel()
	s := &shelf{t: t}
	k := s.keeper()
	keep := func() {
		t.Helper()
		if _, err := k.Keep(t.Context(), "ops", []Wanted{wanted()}); err != nil {
			t.Fatal(err)
		}
	}
	keep()
	written := len(s.did)
	if k.Listed(mirror.GVKCSV, func(namespace, name string) bool { return namespace == "ops" && name == "tide.v1" }) {
		t.Error("a mirror that is there was lost")
	}
	keep()
	if len(s.did) != written {
		t.Errorf("wrote again: %q", s.did)
	}
	s.live = nil
	if !k.Listed(mirror.GVKCSV, func(string, string) bool { return false }) {
		t.Error("a mirror that is not there was not lost")
	}
	keep()
	if len(s.did) != 2*written {
		t.Errorf("did %q", s.did)
	}
}
