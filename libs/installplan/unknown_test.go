package installplan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
)

// A plan whose state a newer release has written, with members that this one does not know in the state, in the
// proposal and in what blocks it, keeps them when this release folds what comes next.
func TestStateOfANewerRelease(t *testing.T) {
	t.Parallel()
	s, err := installplan.Evolve(installplan.State{}, events.InstallPlanProposed{Plan: "p", Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.NewReplacer(`"plan":"p"`, `"plan":"p","wave":3`, `"Blocked":{`, `"Pause":{"By":"x"},"Blocked":{"Until":"y",`).
		Replace(string(text))
	if newer == string(text) {
		t.Fatal("nothing is newer")
	}
	if err := json.Unmarshal([]byte(newer), &s); err != nil {
		t.Fatal(err)
	}
	if s, err = installplan.Evolve(s, events.InstallPlanStarted{}); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"wave":3`, `"Pause":{"By":"x"}`, `"Until":"y"`, `"Begun":true`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s is gone: %s", want, out)
		}
	}
}
