package objects

import (
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/plans"
)

// TestHelpNamesEveryKind: who reads the help of get and delete finds approval policies, too (P20).
func TestHelpNamesEveryKind(t *testing.T) {
	t.Parallel()
	a := &command.Env{}
	for _, r := range kinds.All(a) {
		kind := r.Names[1]
		if help := GetCommand(a).Long; !strings.Contains(help, kind) {
			t.Errorf("get --help does not name %s", kind)
		}
		if help := DeleteCommand(a).Long; r.Remove != nil && !strings.Contains(help, kind) {
			t.Errorf("delete --help does not name %s", kind)
		}
	}
	if usage := plans.ShadowCommand(a).Flags().Lookup("cluster").Usage; strings.Contains(usage, "several") {
		t.Errorf("shadow takes one cluster, and says %q", usage)
	}
}
