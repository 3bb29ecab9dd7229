package service_test

import (
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/service"
)

// What events refer to is kept by one policy: as long as the events by default, 400 days at least (DESIGN D3).
func TestRetention(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	for keep, ok := range map[time.Duration]bool{
		0: true, service.LeastRetention: true, 2 * year: true,
		service.LeastRetention - 1: false, -1: false, year: false, 24 * time.Hour: false,
	} {
		r := service.Retention{Keep: keep}
		err := r.Check()
		if (err == nil) != ok || err != nil && !errs.Is(err, errs.Invalid) {
			t.Errorf("a retention of %s: %v", keep, err)
		}
	}
	for r, want := range map[service.Retention]time.Duration{
		{}: 0, {Keep: 2 * year}: 2 * year, {Keep: 2 * year, LegalHold: true}: 0, {LegalHold: true}: 0,
	} {
		if got := r.Period(); got != want {
			t.Errorf("by %+v things are kept for %s, want %s", r, got, want)
		}
	}
}
