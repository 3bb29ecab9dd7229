package kube

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
)

// seenConfigMap holds, for each namespace, the highest position of the record that was acted on
// there. It is what tells a record that lost commits from the one that it was (DESIGN D1).
const seenConfigMap = "chandler-seen"

var gvkConfigMap = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

func (b *Base) ensureSeen(ctx context.Context) error {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: seenConfigMap, Labels: ownLabels()}}
	_, err := b.Kube.CoreV1().ConfigMaps(SystemNamespace).Create(ctx, cm, metav1.CreateOptions{})
	return existing(err)
}

// Seen is a position that was acted on, with the hub's proof that it told of it.
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
	cm, err := b.Kube.CoreV1().ConfigMaps(SystemNamespace).Get(ctx, seenConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return map[string]Seen{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", seenConfigMap, err)
	}
	out := make(map[string]Seen, len(cm.Data))
	for ns, text := range cm.Data {
		p, err := ParseSeen(text)
		if err != nil {
			return nil, errs.Wrap(errs.Invalid, err, "%s/%s: namespace %s", SystemNamespace, seenConfigMap, ns)
		}
		out[ns] = p
	}
	return out, nil
}

// SetSeen notes a position before anything is done because of it.
func (e *Epoch) SetSeen(ctx context.Context, namespace string, p Seen) error {
	patch, err := json.Marshal(map[string]any{"data": map[string]string{namespace: p.String()}})
	if err != nil {
		return errs.Wrap(errs.Internal, err, "encode position")
	}
	if _, err := e.MergePatch(ctx, gvkConfigMap, SystemNamespace, seenConfigMap, patch); err != nil {
		return fmt.Errorf("note position %s of %s: %w", p.Position, namespace, err)
	}
	return nil
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
