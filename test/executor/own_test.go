package executor_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestDefinitionsComeBack: Chandler's own definitions are made again when somebody deletes them while the cluster is
// held. The operators that went with them are reported as deleted, and can be installed again (DESIGN D7).
func TestDefinitionsComeBack(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	o := operator{name: "tide", version: "1.0.0"}
	content := planned{content: o.content(t)}
	p := b.plan("own", "own", content)
	b.want("own", p)
	b.finishes(t, "own", p, o.csv())
	s := b.scope("own")
	s.Plans, s.Installed = nil, []protocol.Installed{{CSV: o.csv(), Content: p.Digest, Plan: p.ID}}
	b.publish(s)
	definitions := b.dynamic(t).Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	for _, name := range []string{"installedoperators.chandler-fleet.io", "planexecutions.chandler-fleet.io"} {
		must(t, definitions.Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	gone := b.awaitCSV("own", o.csv(), func(r protocol.CSVReport) bool { return r.Removed })
	if gone.RemovedReason != "Deleted" {
		t.Errorf("removed because %s, want Deleted", gone.RemovedReason)
	}
	again := b.plan("own", "own", content)
	b.want("own", again)
	b.finishes(t, "own", again, o.csv())
}
