package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/test/stack"
)

// journal is what portals wrote during a fault, and how it was answered. It lies in a file outside of everything that
// is harmed.
type journal struct {
	mu      sync.Mutex
	file    *os.File
	entries []entry
	answers map[string]int // by status, or "no answer"
	slowest time.Duration
}

// entry is an acknowledged write.
type entry struct {
	At       time.Time `json:"at"`
	Type     string    `json:"type"`     // of the event that it is
	Subject  string    `json:"subject"`  // of the event
	Mark     string    `json:"mark"`     // a text that only this event of the subject holds; "" if it is the only one
	Position string    `json:"position"` // as acknowledged, "" if the answer was lost and the write was found later
}

func newJournal(t *testing.T) *journal {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return &journal{file: f, answers: map[string]int{}}
}

// acknowledged notes a write before anything else is done.
func (j *journal) acknowledged(t *testing.T, e entry) {
	t.Helper()
	e.At = time.Now()
	line, err := json.Marshal(e)
	if err != nil {
		t.Error(err)
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, e)
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		t.Error(err)
	}
}

// answered notes what a person saw.
func (j *journal) answered(err error, took time.Duration) {
	what := "ok"
	var refused *stack.RefusedError
	switch {
	case errors.As(err, &refused):
		what = fmt.Sprint(refused.Status)
	case err != nil:
		what = "no answer"
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.answers[what]++
	j.slowest = max(j.slowest, took)
}

// portal writes while something is harmed, as a portal does that repeats what was not acknowledged.
type portal struct {
	w        *world
	client   stack.Client
	prefix   string // of its namespaces
	catalog  string
	most     int // namespaces
	pause    time.Duration
	journal  *journal
	subjects []string // namespaces whose subscription was acknowledged
}

// requestLimit bounds one request of a portal.
const requestLimit = 15 * time.Second

// writes are made until ctx ends; then the one that is under way is finished, for which the fault has to end.
func (p *portal) write(ctx context.Context) {
	for n := 0; ; n++ {
		if len(p.subjects) < p.most {
			p.namespace(fmt.Sprintf("%s-%d", p.prefix, n))
		}
		p.mark(fmt.Sprintf("%s-%d", p.prefix, n))
		select {
		case <-ctx.Done():
			return
		case <-time.After(p.pause):
		}
	}
}

// namespace wants one small operator in a namespace of its own.
func (p *portal) namespace(ns string) {
	p.until("operatorgroup.created.v1", spoke+"/"+ns+"/group", "", http.MethodPost, scopePath(ns, "operatorgroups"),
		map[string]any{"name": "group", "targetNamespaces": []string{ns}})
	p.until("subscription.created.v1", spoke+"/"+ns+"/light", "", http.MethodPost, scopePath(ns, "subscriptions"),
		subscription{Name: "light", Package: "lighthouse", Catalog: p.catalog})
	p.subjects = append(p.subjects, ns)
}

// mark changes a label, which is an event and nothing more.
func (p *portal) mark(value string) {
	p.until("catalog.metadata-changed.v1", p.catalog, value, http.MethodPatch, "/api/v1/catalogs/"+p.catalog,
		map[string]any{"labels": map[string]any{"entry": value}})
}

// until repeats a write until it is acknowledged. A create whose answer was lost is found as a conflict.
func (p *portal) until(eventType, subject, mark, method, path string, body any) {
	p.w.t.Helper()
	deadline := time.Now().Add(bound)
	for {
		err := p.once(method, path, body)
		var refused *stack.RefusedError
		switch {
		case err == nil:
			p.journal.acknowledged(p.w.t, entry{
				Type: eventType, Subject: subject, Mark: mark,
				Position: p.client.Written(),
			})
			return
		case method == http.MethodPost && errors.As(err, &refused) && refused.Status == http.StatusConflict:
			p.journal.acknowledged(p.w.t, entry{Type: eventType, Subject: subject, Mark: mark})
			return
		case errors.As(err, &refused) && refused.Status < http.StatusInternalServerError &&
			refused.Status != http.StatusConflict && refused.Status != http.StatusTooManyRequests:
			p.w.t.Errorf("%s %s is refused: %v", method, path, err)
			return
		case time.Now().After(deadline):
			p.w.t.Errorf("%s %s is not acknowledged within %s: %v", method, path, bound, err)
			return
		}
		select {
		case <-p.w.ctx.Done(): // the test has ended, and nobody asks for this write any more
			return
		case <-time.After(lookLatest):
		}
	}
}

func (p *portal) once(method, path string, body any) error {
	ctx, cancel := context.WithTimeout(p.w.ctx, requestLimit)
	defer cancel()
	begun := time.Now()
	err := p.client.Do(ctx, method, path, body, nil)
	p.journal.answered(err, time.Since(begun))
	return err
}

// compare looks for every acknowledged write in the log: once, and where it was said to be.
func (j *journal) compare(w *world) {
	w.t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	seen := map[string]string{}
	for _, e := range j.entries {
		rows, err := w.record.Query(w.ctx, `select epoch, position,
				kind || ':' || stream_key || ':' || incarnation || '@' || version
			from eventlog.events where type = $1 and subject = $2
			and ($3 = '' or convert_from(body, 'utf8') like '%"' || $3 || '"%')`, e.Type, e.Subject, e.Mark)
		w.must(err)
		var position events.Position
		var version string
		var found []string
		_, err = pgx.ForEachRow(rows, []any{&position.Epoch, &position.N, &version}, func() error {
			found = append(found, position.String())
			return nil
		})
		w.must(err)
		switch {
		case len(found) != 1:
			w.t.Errorf("%s of %s %s, acknowledged at %q, is in the log %d times %v", e.Type, e.Subject, e.Mark,
				e.Position, len(found), found)
		case e.Position != "" && e.Position != found[0] && e.Position != version:
			w.t.Errorf("%s of %s %s was acknowledged at %s and is at %s", e.Type, e.Subject, e.Mark, e.Position,
				found[0])
		}
		if before, twice := seen[e.Position]; twice && e.Position != "" {
			w.t.Errorf("%s was acknowledged for %s and for %s", e.Position, before, e.Subject)
		}
		seen[e.Position] = e.Subject
	}
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%d writes acknowledged; answers", len(j.entries))
	for _, status := range slices.Sorted(maps.Keys(j.answers)) {
		fmt.Fprintf(&b, " %s: %d", status, j.answers[status])
	}
	fmt.Fprintf(&b, "; slowest %s", j.slowest.Round(time.Millisecond))
	return b.String()
}

// stepLogs are what executors keep in a cluster of each plan that they began.
var stepLogs = schema.GroupVersionResource{
	Group: "chandler-fleet.io", Version: "v1", Resource: "planexecutions",
}

// authorised checks that no plan started that nobody let start: each has exactly one start, which follows its approval,
// or it needs none; and that the cluster has step logs of such plans only.
func (w *world) authorised() {
	w.t.Helper()
	rows, err := w.record.Query(w.ctx, `select s.subject, count(*) from eventlog.events s
		where s.type = 'installplan.started.v1' group by s.subject having count(*) > 1
		union all
		select s.subject, 0 from eventlog.events s
		where s.type = 'installplan.started.v1' and not exists (
			select from eventlog.events p
			where p.kind = s.kind and p.stream_key = s.stream_key and p.incarnation = s.incarnation
			and p.version < s.version and (p.type = 'installplan.approved.v1'
				or p.type = 'installplan.proposed.v1'
				and convert_from(p.body, 'utf8') like '%"approval":"Automatic"%'))`)
	w.must(err)
	var subject string
	var times int
	_, err = pgx.ForEachRow(rows, []any{&subject, &times}, func() error {
		w.t.Errorf("plan %s was started %d times, or without approval", subject, times)
		return nil
	})
	w.must(err)
	client, err := dynamic.NewForConfig(w.cluster.RESTConfig())
	w.must(err)
	list, err := client.Resource(stepLogs).List(w.ctx, metav1.ListOptions{})
	w.must(err)
	for _, o := range list.Items {
		id, _, err := unstructured.NestedString(o.Object, "spec", "plan")
		w.must(err)
		// What a former fault has harmed may be under way again: its start is in the cluster before it is in the log.
		w.eventually(fmt.Sprintf("the log has the start of plan %s, whose step log is %s/%s", id, o.GetNamespace(),
			o.GetName()), func() (string, bool) {
			var starts int
			w.must(w.record.QueryRow(w.ctx, `select count(*) from eventlog.events where type = 'installplan.started.v1'
				and stream_key = $1`, events.Key("default", events.KindInstallPlan, id)).Scan(&starts))
			return fmt.Sprint(starts, " starts"), starts == 1
		})
	}
}
