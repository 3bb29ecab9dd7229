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
	// client-go looks after a connection that was silent for 30 s, and gives it up 15 s later. Tests do not wait for that.
	for name, seconds := range map[string]string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS": "3", "HTTP2_PING_TIMEOUT_SECONDS": "2"} {
		if err := os.Setenv(name, seconds); err != nil {
			panic(err)
		}
	}
	testcluster.Main(m)
}
