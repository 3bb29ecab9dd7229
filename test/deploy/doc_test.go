// Package deploy_test proves that what is delivered beside the programs fits them and a cluster: the
// Helm chart on a real API server, and the settings that chart and docker-compose.yaml hand to the services.
// Their syntax is checked by tools/helm and tools/compose.
package deploy_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/test/testcluster"
)

func TestMain(m *testing.M) { testcluster.Main(m) }
