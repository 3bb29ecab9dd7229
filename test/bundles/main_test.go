package bundles_test

import (
	"os"
	"testing"

	"github.com/chandler-fleet/chandler/test/testcluster"
)

// TestMain runs the tests, or hosts executors for the benchmark that started this process.
func TestMain(m *testing.M) {
	if config := os.Getenv(childEnv); config != "" {
		os.Exit(child(config))
	}
	testcluster.Main(m)
}
