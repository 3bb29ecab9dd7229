package kube

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// The ConfigMaps that begin with seenPrefix hold, for each namespace, the position of the record with which a plan or a
// removal began there last. They are what tells a record that lost commits from the one that it was (DESIGN D1).
//
// A namespace has its place in one of them by the hash of its name: one object takes 1 MiB, some 5,000 entries, and all
// of them a multiple of what Kubernetes takes in namespaces. They are made when they are needed first.
const (
	seenPrefix = "chandler-seen-"
	// seenParts is how many there are: 300,000 namespaces fit in.
	seenParts = 64
	// seenPage is how many of them are read at a time: at most 8 MiB.
	seenPage = 8
)

var gvkConfigMap = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// seenName names the ConfigMap that holds a namespace. The hash must never change.
func seenName(namespace string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(namespace)) // it never fails
	return fmt.Sprintf("%s%02d", seenPrefix, h.Sum32()%seenParts)
}

// Seen is a position that was acted on, with the hub's proof that it told of it. The hash of the event there is in the
// proof; one that was stored before hashes were has none.
type Seen struct {
	events.Position
	Proof []byte
}

// String is the position and the proof in base64, with a space between them.
func (s Seen) String() string {
	if len(s.Proof) == 0 {
		return s.Position.String()
	}
	return s.Position.String() + " " + base64.StdEncoding.EncodeToString(s.Proof)
}

// Contradicts reports whether another event is at the same position of the record by another proof: the record is not
// the one that was acted on.
func (s Seen) Contradicts(p events.Position, proof []byte) bool {
	was, is := protocol.ProvedHash(s.Proof), protocol.ProvedHash(proof)
	return s.Position == p && was != "" && is != "" && was != is
}

// ParseSeen reads what String writes.
func ParseSeen(text string) (s Seen, err error) {
	position, proof, _ := strings.Cut(text, " ")
	if s.Position, err = events.ParsePosition(position); err != nil {
		return s, err
	}
	s.Proof, err = base64.StdEncoding.DecodeString(proof)
	return s, err
}

// Seen returns the positions by namespace.
func (b *Base) Seen(ctx context.Context) (map[string]Seen, error) {
	out := map[string]Seen{}
	next := ""
	for {
		list, err := b.Kube.CoreV1().ConfigMaps(SystemNamespace).List(ctx,
			metav1.ListOptions{Limit: seenPage, Continue: next})
		if apierrors.IsResourceExpired(err) { // an API server that was away for long; from the beginning
			next = ""
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s*: %w", seenPrefix, err)
		}
		for i := range list.Items {
			if err := readSeen(&list.Items[i], out); err != nil {
				return nil, err
			}
		}
		if next = list.Continue; next == "" {
			return out, nil
		}
	}
}

// readSeen takes the entries of a ConfigMap where it is one of those that hold positions. One that lies where it does
// not belong was put there by somebody else.
func readSeen(cm *corev1.ConfigMap, into map[string]Seen) error {
	if !strings.HasPrefix(cm.Name, seenPrefix) {
		return nil
	}
	for ns, text := range cm.Data {
		if seenName(ns) != cm.Name {
			continue
		}
		p, err := ParseSeen(text)
		if err != nil {
			return errs.Wrap(errs.Invalid, err, "%s/%s: namespace %s", SystemNamespace, cm.Name, ns)
		}
		into[ns] = p
	}
	return nil
}

// Positions writes what Seen reads, in an epoch.
type Positions struct{ *Epoch }

// Set notes a position before anything is done because of it.
func (e Positions) Set(ctx context.Context, namespace string, p Seen) error {
	err := e.patch(ctx, namespace, p.String())
	if apierrors.IsNotFound(err) {
		cm := &unstructured.Unstructured{}
		cm.SetGroupVersionKind(gvkConfigMap)
		cm.SetName(seenName(namespace))
		cm.SetLabels(ownLabels())
		_, err = e.objects(gvkConfigMap, SystemNamespace).Create(ctx, cm, metav1.CreateOptions{FieldManager: userAgent})
		if err = existing(err); err == nil {
			err = e.patch(ctx, namespace, p.String())
		}
	}
	if err != nil {
		return fmt.Errorf("note position %s of %s: %w", p.Position, namespace, err)
	}
	return nil
}

// Forget drops the entry of a namespace in which nothing is left to be acted on.
func (e Positions) Forget(ctx context.Context, namespace string) error {
	err := e.patch(ctx, namespace, nil)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("forget the position of %s: %w", namespace, err)
	}
	return nil
}

func (e Positions) patch(ctx context.Context, namespace string, value any) error {
	patch, err := json.Marshal(map[string]any{"data": map[string]any{namespace: value}})
	if err != nil {
		return errs.Wrap(errs.Internal, err, "encode position")
	}
	_, err = e.MergePatch(ctx, gvkConfigMap, SystemNamespace, seenName(namespace), patch)
	return err
}

func toMap(v any) (map[string]any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var m map[string]any
	err = utiljson.Unmarshal(raw, &m)
	return m, err
}

func fromMap(m map[string]any, into any) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}
