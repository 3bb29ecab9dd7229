package executor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestShared: an object of the cluster's that one package brings in two namespaces is both's, and goes with the last of
// them; another package's is taken over by nobody, and a plan that would do so waits before its first step.
func TestShared(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	const class = "gauge-high"
	bring := func(ns, name string) protocol.Plan {
		o := operator{name: name, version: "1.0.0"}
		raw := [][]byte{[]byte(o.manifest()), []byte("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: " + class + "}\nvalue: 7\n")}
		c, err := bundle.FromManifests(raw)
		must(t, err)
		p := b.plan(ns, name, planned{content: c})
		b.want(ns, p)
		return p
	}
	remove := func(ns string, p protocol.Plan, csv string) protocol.RemovalReport {
		s := b.scope(ns)
		x := b.Removal(ns, protocol.Removal{ID: uuid.NewString(), CSV: csv})
		s.Plans, s.Removals = nil, []protocol.Removal{x}
		s.Installed = []protocol.Installed{{CSV: csv, Content: p.Digest, Plan: p.ID}}
		b.publish(s)
		return b.AwaitRemoval(ns, x.ID, func(m protocol.RemovalReport) bool { return m.Phase == protocol.PlanFinished })
	}
	one := bring("north", "gauge")
	b.finishes(t, "north", one, "gauge.v1.0.0")
	two := bring("south", "gauge")
	b.finishes(t, "south", two, "gauge.v1.0.0")
	if by, brought := b.sharers(t, class); by != "south" || !slices.Equal(brought, []string{"north/gauge.v1.0.0", "south/gauge.v1.0.0"}) {
		t.Fatalf("it is that of %s, brought by %v", by, brought)
	}

	rival := bring("west", "rival")
	waits := b.awaitPlan("west", rival.ID, blocked("FieldManagerConflict"))
	if waits.Class != "conflict" || !strings.Contains(waits.Message, "belongs to operator south/gauge.v1.0.0, and operator west/rival.v1.0.0") {
		t.Errorf("class %s, message %q: want a conflict that names both", waits.Class, waits.Message)
	}
	if found, err := b.kube.AppsV1().Deployments("west").List(t.Context(), metav1.ListOptions{}); err != nil || len(found.Items) > 0 || waits.Done > 0 {
		t.Errorf("%d steps are done, %v; %v", waits.Done, found, err)
	}

	left := remove("south", two, "gauge.v1.0.0").Left
	if !slices.ContainsFunc(left, func(l protocol.Leftover) bool {
		return l.Name == class && l.Reason == protocol.LeftOtherOwners && slices.Equal(l.Owners, []string{"north/gauge.v1.0.0"})
	}) {
		t.Errorf("left %+v", left)
	}
	if by, brought := b.sharers(t, class); by != "north" || !slices.Equal(brought, []string{"north/gauge.v1.0.0"}) {
		t.Errorf("then it is that of %s, brought by %v", by, brought)
	}
	remove("north", one, "gauge.v1.0.0")
	b.finishes(t, "west", rival, "rival.v1.0.0")
	if by, brought := b.sharers(t, class); by != "west" || !slices.Equal(brought, []string{"west/rival.v1.0.0"}) {
		t.Errorf("at the end it is that of %s, brought by %v", by, brought)
	}
}

// sharers are the namespace of the operator that an object is said to belong to, and those that brought it.
func (b *bed) sharers(t *testing.T, name string) (by string, brought []string) {
	t.Helper()
	var found *schedulingv1.PriorityClass
	await(t, "PriorityClass "+name, func(ctx context.Context) (err error) {
		if found, err = b.kube.SchedulingV1().PriorityClasses().Get(ctx, name, metav1.GetOptions{}); err == nil && found.Value != 7 {
			err = fmt.Errorf("value %d", found.Value)
		}
		return err
	})
	for key, value := range found.Annotations {
		if strings.HasPrefix(key, "operatorframework.io/installed-alongside-") {
			brought = append(brought, value)
		}
	}
	slices.Sort(brought)
	return found.Labels["olm.owner.namespace"], brought
}
