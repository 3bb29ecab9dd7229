package queries_test

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/installer/internal/queries"
)

// TestSlowClusterKeepsNobodyWaiting: clusters that do not answer take the places of their own tenant, two questions
// each; another cluster, and another tenant, are answered meanwhile. Equal questions are asked once, and what is taken
// is given back.
func TestSlowClusterKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	s := queries.NewShares()
	hang, began := make(chan struct{}), make(chan string, 1000)
	slow := func(ctx context.Context) (json.RawMessage, error) {
		began <- ""
		select {
		case <-hang:
		case <-ctx.Done():
		}
		return json.RawMessage(`"late"`), nil
	}
	quick := func(context.Context) (json.RawMessage, error) { return json.RawMessage(`"at once"`), nil }
	var waiting sync.WaitGroup
	ask := func(cluster, about string) {
		waiting.Go(func() {
			got, err := s.Do(t.Context(), "t", cluster, "check", about, slow)
			if err != nil || string(got) != `"late"` {
				t.Errorf("%s is told %s, %v", cluster, got, err)
			}
		})
		<-began
	}
	ask("slow", "a")
	ask("slow", "b")
	if _, err := s.Do(t.Context(), "t", "slow", "check", "c", quick); !errs.Is(err, errs.Unavailable) {
		t.Errorf("a third question to a slow cluster: %v", err)
	}
	if got, err := s.Do(t.Context(), "t", "other", "check", "a", quick); err != nil || string(got) != `"at once"` {
		t.Errorf("another cluster: %s, %v", got, err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := s.Do(gone, "t", "slow", "check", "a", quick); !errs.Is(err, errs.Unavailable) || len(began) > 0 {
		t.Errorf("an equal question was asked again, or waited for by who left: %v", err)
	}
	for i := range 15 { // with the two, all places of the tenant
		ask("slow"+strconv.Itoa(i), "a")
		ask("slow"+strconv.Itoa(i), "b")
	}
	if _, err := s.Do(t.Context(), "t", "other", "check", "a", quick); !errs.Is(err, errs.Unavailable) {
		t.Errorf("a tenant has more than its share: %v", err)
	}
	if got, err := s.Do(t.Context(), "u", "other", "check", "a", quick); err != nil || string(got) != `"at once"` {
		t.Errorf("another tenant: %s, %v", got, err)
	}
	close(hang)
	waiting.Wait()
	if got, err := s.Do(t.Context(), "t", "slow", "check", "c", quick); err != nil || string(got) != `"at once"` {
		t.Errorf("afterwards: %s, %v", got, err)
	}
}
