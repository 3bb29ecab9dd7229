package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/test/stack"
)

// TestOlderBackup restores a backup of the database that is older than what NATS and the cluster have seen, and walks
// the way out that docs/deploy.md describes. DESIGN D1: effects stop until a person resumes, and nothing in a cluster
// goes back.
func TestOlderBackup(t *testing.T) {
	w := newDurableWorld(t)
	w.addCatalog("harbour", example(t))
	light := subscription{Name: "light", Package: "lighthouse", Catalog: "harbour"}
	w.group("before")
	w.subscribe("before", light)
	w.succeeded("before", "lighthouse.v1.2.0")

	backup := filepath.Join(filepath.Dir(w.Postgres().DataDir()), "backup-of-a-test")
	t.Cleanup(func() {
		if err := os.RemoveAll(backup); err != nil {
			t.Error(err)
		}
	})
	w.must(w.Postgres().Stop())
	w.copied(w.Postgres().DataDir(), backup)
	w.must(w.StartPostgres(w.ctx))
	w.readyAgain()

	w.group("lost")
	w.subscribe("lost", light)
	w.succeeded("lost", "lighthouse.v1.2.0")

	w.must(w.Postgres().Stop())
	dir := w.Postgres().DataDir()
	w.must(os.RemoveAll(dir))
	w.copied(backup, dir)
	w.must(w.StartPostgres(w.ctx))
	w.readyAgain()
	var effects struct {
		Stopped        bool
		Reason, Detail string
		Epoch          int64
	}
	w.eventually("effects are stopped", func() (string, bool) {
		// Not as the portal that wrote before: its writes are lost, so that it would wait for them.
		w.must(w.Stack.Client().Get(w.ctx, "/api/v1/effects", &effects))
		return fmt.Sprint(effects), effects.Stopped && effects.Reason == "RecordLostCommits"
	})
	w.group("while-stopped")
	w.subscribe("while-stopped", light)
	w.eventually("a plan waits because effects are stopped", func() (string, bool) {
		plans := w.plans("while-stopped")
		return fmt.Sprint(plans), len(plans) == 1 && plans[0].Phase == "Installing"
	})
	if got := w.operators("while-stopped"); len(got) > 0 {
		t.Errorf("while effects are stopped the namespace has %v", got)
	}
	list, err := w.dynamic().Resource(installedOperators).Namespace("lost").List(w.ctx, metav1.ListOptions{})
	w.must(err)
	if len(list.Items) != 1 {
		t.Errorf("the operator that the restored record does not know is gone from its cluster: %d are left",
			len(list.Items))
	}
	w.must(w.Post(w.ctx, "/api/v1/effects", map[string]any{"action": "resume", "epoch": effects.Epoch}, nil))
	w.succeeded("while-stopped", "lighthouse.v1.2.0")
	w.group("after")
	w.subscribe("after", light)
	w.succeeded("after", "lighthouse.v1.2.0")
	for _, name := range stack.Services {
		w.must(w.Stack.Ready(w.ctx, name))
	}
}
