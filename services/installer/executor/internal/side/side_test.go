package side_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chandler-fleet/chandler/services/installer/executor/internal/side"
)

// A panic in one goroutine ends neither the process nor the others: whoever waits for them has it, and can recover.
func TestAPanicReachesWhoWaits(t *testing.T) {
	t.Parallel()
	var done atomic.Int32
	defer func() {
		if v, ok := recover().(string); !ok || !strings.HasPrefix(v, "three") || done.Load() != 9 {
			t.Errorf("recovered %q after %d others", v, done.Load())
		}
	}()
	side.Each(10, 2, func(i int) {
		if i == 3 {
			panic("three")
		}
		done.Add(1)
	})
	t.Error("the panic is lost")
}
