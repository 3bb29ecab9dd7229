package pg_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/pg"
)

// The pools of all services fit into max_connections: into PostgreSQL's default at the chart's default scale, and at
// its maximum scale into what its README says is needed.
func TestPoolsFitMaxConnections(t *testing.T) {
	t.Parallel()
	const (
		serverDefault = 100
		others        = 13 // 3 reserved for superusers, the migration, people with psql, backups, monitoring
		services      = 4
		each          = (services-1)*pg.MaxConns + pg.WorkConns + pg.RequestConns
	)
	chart := func(name string) []byte {
		t.Helper()
		data, err := os.ReadFile(filepath.Join("..", "..", "deploy", "helm", "chandler", name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	found := regexp.MustCompile(`(?m)^ {2}replicaCount: (\d+)$`).FindAllStringSubmatch(string(chart("values.yaml")), -1)
	if len(found) != services {
		t.Fatalf("the chart has %d services, want %d", len(found), services)
	}
	for _, f := range found {
		replicas, err := strconv.Atoi(f[1])
		if need := replicas*each + others; err != nil || need > serverDefault {
			t.Errorf("%d replicas of each need %d connections, the default of PostgreSQL is %d (%v)", replicas, need,
				serverDefault, err)
		}
	}
	var schema struct {
		Definitions struct {
			ReplicaCount struct{ Maximum int } `json:"replicaCount"`
		} `json:"definitions"`
	}
	if err := json.Unmarshal(chart("values.schema.json"), &schema); err != nil {
		t.Fatal(err)
	}
	largest := schema.Definitions.ReplicaCount.Maximum
	need := largest*each + others
	said := regexp.MustCompile(`maximum of (\d+) replicas of each it must be (\d+)`).
		FindStringSubmatch(strings.Join(strings.Fields(string(chart("README.md"))), " "))
	if len(said) != 3 || said[1] != fmt.Sprint(largest) {
		t.Fatalf("the README of the chart does not say what its maximum of %d replicas needs: %q", largest, said)
	}
	if stated, err := strconv.Atoi(said[2]); err != nil || stated < need || largest == 0 {
		t.Errorf("%d replicas of each need %d connections, the README says %s (%v)", largest, need, said[2], err)
	}
}
