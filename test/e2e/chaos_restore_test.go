package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-fleet/chandler/libs/doccommand"
	"github.com/chandler-fleet/chandler/test/stack"
)

// TestOlderBackup restores a backup of the database that is older than what NATS and the cluster have seen, and walks
// the way out that docs/howto/restore-a-backup.md describes. DESIGN D1: effects stop until a person resumes, and
// nothing in a cluster goes back.
func TestOlderBackup(t *testing.T) {
	t.Parallel()
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
	before := w.deploymentsIn("lost")
	if len(before) == 0 {
		t.Error("the operator that the restored record does not know is gone from its cluster")
	}
	w.group("lost") // what was lost is added again
	w.subscribe("lost", light)
	said := w.followed(filepath.Join("docs", "howto", "restore-a-backup.md"))
	for command, want := range map[string]string{
		"effects":                  "effects are stopped.*RecordLostCommits.*epoch 2",
		"get subscriptions -A":     "lost.*light",
		"get clusters":             spoke,
		"effects resume --epoch 2": "effects are allowed; epoch 2",
	} {
		if !regexp.MustCompile(want).MatchString(said[command]) {
			t.Errorf("chandler %s says %q, want %s", command, said[command], want)
		}
	}
	w.succeeded("while-stopped", "lighthouse.v1.2.0")
	w.succeeded("lost", "lighthouse.v1.2.0")
	if diff := cmp.Diff(before, w.deploymentsIn("lost")); diff != "" {
		t.Errorf("the operator that ran already was written anew (-before +after):\n%s", diff)
	}
	w.group("after")
	w.subscribe("after", light)
	w.succeeded("after", "lighthouse.v1.2.0")
	for _, name := range stack.Services {
		w.must(w.Stack.Ready(w.ctx, name))
	}
}

// written is what is written of an object: a new generation says that it was written anew, spec where.
type written struct {
	Generation int64
	Spec       any
}

// deploymentsIn are the Deployments of a namespace by UID.
func (w *world) deploymentsIn(namespace string) map[types.UID]written {
	w.t.Helper()
	list, err := w.dynamic().Resource(deployments).Namespace(namespace).List(w.ctx, metav1.ListOptions{})
	w.must(err)
	all := map[types.UID]written{}
	for _, d := range list.Items {
		all[d.GetUID()] = written{d.GetGeneration(), d.Object["spec"]}
	}
	return all
}

// followed runs the commands of a document line by line, and returns what each has said.
func (w *world) followed(document string) map[string]string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(repository(w.t), document))
	w.must(err)
	// In a list the blocks are indented.
	plain := regexp.MustCompile("(?m)^ +").ReplaceAllString(string(text), "")
	said := map[string]string{}
	for _, c := range doccommand.Blocks(document, plain, "chandler") {
		cmd := exec.CommandContext(w.ctx, filepath.Join(bin, "chandler"), c.Words...)
		cmd.Env = append(os.Environ(), "CHANDLER_URL="+w.Stack.URL(), "CHANDLER_TOKEN="+w.Stack.Token())
		out, err := cmd.CombinedOutput()
		if err != nil {
			w.t.Errorf("%s: chandler %s: %v\n%s", c.Place, c, err, out)
		}
		said[c.String()] = string(out)
	}
	if len(said) == 0 {
		w.t.Errorf("%s has no commands", document)
	}
	return said
}
