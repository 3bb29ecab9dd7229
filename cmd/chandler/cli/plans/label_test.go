package plans

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestSuggestedLabels: ADR 0063: what a group says of a label goes before what a bundle suggests, unless asked.
func TestSuggestedLabels(t *testing.T) {
	t.Parallel()
	have := map[string]string{"enforce": "restricted", "tier": "quay", "own": "1"}
	suggested := []model.SuggestedLabel{
		{Key: "enforce", Value: "privileged"}, {Key: "tier", Value: "quay"}, {Key: "new", Value: "2"},
	}
	for _, c := range []struct {
		overwrite bool
		want      map[string]string
		kept      []model.SuggestedLabel
	}{
		{false, map[string]string{"enforce": "restricted", "tier": "quay", "own": "1", "new": "2"}, suggested[:1]},
		{true, map[string]string{"enforce": "privileged", "tier": "quay", "own": "1", "new": "2"}, nil},
	} {
		labels, kept := suggestedLabels(have, suggested, c.overwrite)
		if diff := cmp.Diff(c.want, labels); diff != "" {
			t.Errorf("overwrite %t: %s", c.overwrite, diff)
		}
		if diff := cmp.Diff(c.kept, kept); diff != "" {
			t.Errorf("overwrite %t: kept %s", c.overwrite, diff)
		}
	}
	if have["enforce"] != "restricted" || len(have) != 3 {
		t.Errorf("the caller's map became %v", have)
	}
}
