package certs

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// LabelServing marks the Secrets.
const LabelServing = "chandler-fleet.io/serving"

// Selector selects the Secrets.
const Selector = LabelServing + "=true"

// GVKSecret is their kind.
var GVKSecret = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}

// Kept is a certificate in its Secret.
type Kept struct {
	Certificate

	Owner string // uid of the InstalledOperator that owns the Secret
	// Gone is set where the Secret was there and is no more: its CA is still the one that pods serve under.
	Gone bool
}

// Store remembers, by namespace and name, what is in the Secrets, so that a reconcile reads none. A watch says when one
// has changed.
type Store struct {
	mu    sync.Mutex
	known map[string]namespace
}

type namespace struct {
	fresh   bool
	changes int // told by the watch
	secrets map[string]Kept
}

// NewStore returns an empty store.
func NewStore() *Store { return &Store{known: map[string]namespace{}} }

// Forget has a namespace read again.
func (s *Store) Forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.known[name]
	n.fresh, n.changes = false, n.changes+1
	s.known[name] = n
}

// Get returns the certificates of a namespace by name of the Secret. The map is the caller's own.
func (s *Store) Get(ctx context.Context, client *kube.Epoch, name string) (map[string]Kept, error) {
	s.mu.Lock()
	n := s.known[name]
	s.mu.Unlock()
	if n.fresh {
		return maps.Clone(n.secrets), nil
	}
	list, err := client.List(ctx, GVKSecret, name, Selector)
	if err != nil {
		return nil, err
	}
	next := namespace{fresh: true, changes: n.changes, secrets: make(map[string]Kept, len(list))}
	for secret, k := range n.secrets {
		k.Gone = true
		next.secrets[secret] = k
	}
	for i := range list {
		k, err := read(&list[i])
		if err != nil {
			return nil, err
		}
		next.secrets[list[i].GetName()] = k
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[name].changes == n.changes { // else one has changed since the list
		s.known[name] = next
	}
	return maps.Clone(next.secrets), nil
}

// Times are when the newest of some certificates was made, and when the first is to be renewed.
func Times(list []Kept) (updated, rotateAt time.Time) {
	for _, k := range list {
		made, rotate := k.Times()
		if made.After(updated) {
			updated = made
		}
		if rotateAt.IsZero() || rotate.Before(rotateAt) {
			rotateAt = rotate
		}
	}
	return updated, rotateAt
}

func read(o *unstructured.Unstructured) (Kept, error) {
	text, _, err := unstructured.NestedStringMap(o.Object, "data")
	if err != nil {
		return Kept{}, errs.Wrap(errs.Invalid, err, "data of Secret %s/%s", o.GetNamespace(), o.GetName())
	}
	data := make(map[string][]byte, len(text))
	for k, v := range text {
		if data[k], err = base64.StdEncoding.DecodeString(v); err != nil {
			return Kept{}, errs.Wrap(errs.Invalid, err, "data of Secret %s/%s", o.GetNamespace(), o.GetName())
		}
	}
	kept := Kept{Certificate: FromData(data), Gone: o.GetDeletionTimestamp() != nil}
	for _, owner := range o.GetOwnerReferences() {
		kept.Owner = string(owner.UID)
	}
	return kept, nil
}

// Draw draws the keys of a certificate.
func Draw() (Keys, error) {
	ca, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Keys{}, errs.Wrap(errs.Internal, err, "draw the key of a CA")
	}
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Keys{}, errs.Wrap(errs.Internal, err, "draw the key of a certificate")
	}
	return Keys{CA: ca, Serving: leaf}, nil
}

// Secret is the Secret of a certificate, without its owner.
func Secret(ns, name, csv string, c Certificate) *unstructured.Unstructured {
	data := map[string]any{}
	for k, v := range c.Data() {
		data[k] = base64.StdEncoding.EncodeToString(v)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": GVKSecret.Kind, "type": "kubernetes.io/tls", "data": data,
		"metadata": map[string]any{
			"namespace": ns, "name": name,
			"annotations": map[string]any{render.AnnotationCAHash: c.Hash()},
			"labels": map[string]any{
				kube.LabelManaged: "true", LabelServing: "true", render.LabelManaged: "true",
				render.LabelOwner: render.OwnerLabelValue(csv), render.LabelOwnerKind: kube.GVKCSV.Kind,
				render.LabelOwnerNamespace: ns,
			},
		},
	}}
}
