package api

import (
	"context"
	"net/http"
	"testing"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestPlacesOfReviews: plans are rendered for one request of an identity after the other, and for a few at a time; who
// finds no place is told to ask again, and a place that was left is given to who waits for it.
func TestPlacesOfReviews(t *testing.T) {
	t.Parallel()
	h := newReviewHandlers(Deps{})
	patient := t.Context()
	hasty, cancel := context.WithCancel(patient) // does not wait
	cancel()
	caller := func(actor string) model.Caller { return model.Caller{Tenant: "default", Actor: actor} }
	enter := func(actor string) (leave func()) {
		t.Helper()
		leave, err := h.enter(patient, caller(actor))
		if err != nil {
			t.Fatal(actor, err)
		}
		return leave
	}
	refused := func(actor string, status int) {
		t.Helper()
		_, err := h.enter(hasty, caller(actor))
		if err == nil {
			t.Fatalf("%s has a place", actor)
		}
		p := problemOf(patient, err)
		if p.Status != status || p.GetHeaders().Get("Retry-After") != "1" {
			t.Errorf("%s is answered %+v, %v", actor, p, p.GetHeaders())
		}
	}

	first := enter("a")
	refused("a", http.StatusTooManyRequests)
	var others []func()
	for i := range maxReviews - 1 {
		others = append(others, enter("b"+string(rune('0'+i))))
	}
	for range 10 { // whoever is refused leaves nothing behind, whichever way
		_, err := h.enter(hasty, caller("late"))
		if p := problemOf(patient, err); p.Status != http.StatusServiceUnavailable &&
			p.Status != http.StatusTooManyRequests {
			t.Errorf("got %+v", p)
		}
	}

	waits := make(chan error)
	go func() {
		leave, err := h.enter(patient, caller("a"))
		if err == nil {
			leave()
		}
		waits <- err
	}()
	first()
	if err := <-waits; err != nil {
		t.Error("who waits is not let in", err)
	}
	for _, leave := range others {
		leave()
	}
	for i := range maxReviews { // no place is lost
		t.Cleanup(enter("c" + string(rune('0'+i))))
	}
}
