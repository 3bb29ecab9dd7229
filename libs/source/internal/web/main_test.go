package web_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain proves that no read leaves a goroutine or a connection behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
