package app_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestChangesThatOvertakeEachOtherAreAllDecided: a change decided on a state that has moved on is
// decided again, and none is lost.
func TestChangesThatOvertakeEachOtherAreAllDecided(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	const path = "/api/v1/clusters/spoke/namespaces/ops/operatorgroups"
	must[model.OperatorGroup](b, 201, b.do("POST", path, model.CreateOperatorGroup{Name: "g"}))
	const writers = 4
	var wg sync.WaitGroup
	statuses := make([]int, writers)
	for i := range writers {
		wg.Go(func() {
			statuses[i] = b.do("PUT", path+"/g", model.OperatorGroupSpec{
				TargetNamespaces: []string{fmt.Sprintf("ns-%d", i)},
			}).status
		})
	}
	wg.Wait()
	changed := 0
	for _, s := range statuses {
		if s == http.StatusOK {
			changed++
		} else if s != http.StatusConflict {
			t.Errorf("status %d", s)
		}
	}
	if n := b.count(`select version from eventlog.streams where kind = 'operatorgroup'`); changed == 0 ||
		n != 1+changed {
		t.Errorf("%d of %d changes were taken, the stream is at version %d", changed, writers, n)
	}
}

// TestApprovalsAtOnce: the same approval by two people at once is one event.
func TestApprovalsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := uuid.NewString()
	p := proposed(id, "install-aaaaa", "tidegauge.v1.0.0", "tidegauge")
	b.fact(events.Resolver, events.KindInstallPlan, id, "spoke/ops/install-aaaaa", p)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if a := b.do("POST", "/api/v1/installplans/"+id+"/approve",
				model.ApprovePlan{Digest: p.Digest}); a.status != 200 {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
	wg.Wait()
	if n := b.count(`select version from eventlog.streams where kind = 'installplan'`); n != 2 {
		t.Errorf("the stream is at version %d", n)
	}
}
