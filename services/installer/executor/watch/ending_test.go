package watch

import (
	"context"
	"testing"
	"time"
)

// TestEnding: a pause before the next try does not outlast the watch.
func TestEnding(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	over := ending{ctx: ctx}.After(time.Hour)
	cancel()
	<-over
	<-ending{ctx: t.Context()}.After(time.Millisecond)
}
