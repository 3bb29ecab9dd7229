package bundles_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/test/testcluster"
)

func TestMain(m *testing.M) { testcluster.Main(m) }
