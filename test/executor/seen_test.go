package executor_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// partOf names the ConfigMap that remembers a namespace.
func partOf(ns string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(ns))
	return fmt.Sprintf("chandler-seen-%02d", h.Sum32()%64)
}

// TestSeen: a cluster of 12,000 namespaces in which something was installed works as any other: the positions of the
// record that were acted on are in several objects, none of which is near the 1 MiB that an object takes. A position is
// written before a plan begins, and not for messages that begin nothing; what a namespace leaves is forgotten with it,
// and what is remembered of the others still holds (DESIGN D1).
func TestSeen(t *testing.T) {
	t.Parallel()
	const namespaces = 12_000
	b := newBed(t)
	ctx := t.Context()
	maps := b.kube.CoreV1().ConfigMaps("chandler-system")
	_, err := b.kube.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "chandler-system"}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		must(t, err)
	}
	parts := map[string]map[string]string{}
	note := func(ns string, n int64) {
		name := partOf(ns)
		if parts[name] == nil {
			parts[name] = map[string]string{}
		}
		// as long as an entry gets: a position and its proof
		parts[name][ns] = events.Position{Epoch: 1, N: n}.String() + " " + strings.Repeat("A", 240)
	}
	for i := range namespaces {
		note(fmt.Sprintf("%s-%05d", strings.Repeat("n", 57), i), int64(i+1))
	}
	note("ahead", 1_000_000)
	for name, data := range parts {
		_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data},
			metav1.CreateOptions{})
		must(t, err)
	}
	b.start(b.config("one"))

	read := func(ns string) string {
		t.Helper()
		cm, err := maps.Get(ctx, partOf(ns), metav1.GetOptions{})
		must(t, err)
		return cm.Data[ns]
	}
	// A namespace that is new: nothing is written until a plan begins.
	o, content := simple(t, "fresh")
	for range 3 {
		b.want("fresh")
	}
	old, oldContent := simple(t, "ahead")
	b.want("ahead", b.plan("ahead", "ahead", oldContent))
	p := b.plan("fresh", "fresh", content)
	if got := read("fresh"); got != "" {
		t.Errorf("a message that begins nothing is noted: %q", got)
	}
	b.want("fresh", p)
	b.finishes(t, "fresh", p, o.csv())
	noted := read("fresh")
	if !strings.HasPrefix(noted, b.scope("fresh").Position.String()+" ") {
		t.Errorf("noted is %.20q, want %s", noted, b.scope("fresh").Position)
	}
	position, hash, _ := strings.Cut(noted, " ")
	proof, err := base64.StdEncoding.DecodeString(hash)
	must(t, err)
	if got := protocol.ProvedHash(proof); got != b.EventAt(b.scope("fresh").Position) {
		t.Errorf("with position %s the event %q is noted", position, got)
	}
	// The record is replaced by one that is as long: nothing follows from it.
	second, secondContent := simple(t, "second")
	s := b.scope("fresh")
	s.Plans = append(s.Plans, b.plan("fresh", "second", secondContent))
	b.ReplaceRecord("another")
	b.publishAt(s)
	b.awaitPlan("fresh", s.Plans[1].ID, blocked("RecordBehind"))
	b.ReplaceRecord("")
	_, err = b.kube.AppsV1().Deployments("fresh").Get(ctx, second.name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("something was begun by a record that was replaced: %v", err)
	}
	await(t, "the report of the cluster", func(ctx context.Context) error {
		r, ok, err := b.clusterReport(ctx)
		if err != nil || !ok || r.Acted.N != 1_000_000 || len(r.ActedProof) == 0 {
			return fmt.Errorf("acted on %s: %w", r.Acted, err)
		}
		return nil
	})
	// What was remembered of another one holds: its record has gone back.
	await(t, "the report of the namespace ahead", func(ctx context.Context) error {
		r, ok, err := b.report(ctx, "ahead")
		if err != nil || !ok {
			return fmt.Errorf("no report: %w", err)
		}
		if len(r.Plans) > 0 && r.Plans[0].Reason != "RecordBehind" || r.Seen.N != 1_000_000 {
			return fmt.Errorf("plans %+v, seen %s", r.Plans, r.Seen)
		}
		return nil
	})
	_, err = b.kube.AppsV1().Deployments("ahead").Get(ctx, old.name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("something was begun in a namespace whose record has gone back: %v", err)
	}
	// The end: it is uninstalled, and nobody wants anything of the namespace.
	s.Plans, s.Removals = nil, []protocol.Removal{b.Removal("fresh", protocol.Removal{ID: "gone", CSV: o.csv()})}
	b.publish(s)
	await(t, "the end of the removal", func(ctx context.Context) error {
		r, ok, err := b.report(ctx, "fresh")
		if err != nil || !ok || len(r.Removals) != 1 || r.Removals[0].Phase != protocol.PlanFinished {
			return fmt.Errorf("reported of removals: %+v, %w", r.Removals, err)
		}
		return nil
	})
	s.Removals, s.OperatorGroups = nil, 0
	b.publish(s)
	await(t, "the namespace to be forgotten", func(context.Context) error {
		if got := read("fresh"); got != "" {
			return fmt.Errorf("it is remembered as %q", got)
		}
		return nil
	})
	if got := read(fmt.Sprintf("%s-%05d", strings.Repeat("n", 57), 77)); got == "" {
		t.Error("another namespace was forgotten, too")
	}
}
