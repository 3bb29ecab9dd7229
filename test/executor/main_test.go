package executor_test

import (
	"os"
	"testing"

	"github.com/chandler-fleet/chandler/test/testcluster"
)

// TestMain runs the tests, or an executor as a process of its own for the test that started it.
func TestMain(m *testing.M) {
	if config := os.Getenv(childEnv); config != "" {
		os.Exit(child(config))
	}
	testcluster.Main(m)
}
