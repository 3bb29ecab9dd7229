package objects

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/libs/client"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/spelling"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// What chandler wait can wait for.
const (
	goalDelete    = "delete"
	goalPhase     = "phase"
	goalState     = "state"
	goalCondition = "condition"
	// goalLatest is what apply --wait wants of a subscription; nobody can ask for it by --for.
	goalLatest = "latest"
)

// goal is what chandler wait wants of an object.
type goal struct {
	what string
	name string // of a condition
	want string
}

// parseGoal reads --for.
func parseGoal(text string) (goal, error) {
	what, rest, _ := strings.Cut(text, "=")
	g := goal{what: what, want: rest}
	known := []string{goalPhase, goalState, goalCondition, goalDelete}
	switch {
	case text == "":
		return g, command.Usagef("missing --for: phase=PHASE, state=STATE, condition=TYPE[=STATUS] or delete")
	case !slices.Contains(known, what):
		return g, command.Usagef("--for %q%s: want phase=PHASE, state=STATE, condition=TYPE[=STATUS] or delete", text,
			spelling.DidYouMean(what, known))
	case what == goalDelete:
		if text != goalDelete {
			return g, command.Usagef("--for %q: delete has no value", text)
		}
		return g, nil
	case what == goalCondition:
		g.name, g.want, _ = strings.Cut(rest, "=")
		g.want = printer.Or(g.want, "True")
		rest = g.name
	}
	switch known := slices.ContainsFunc(phases, func(p string) bool { return strings.EqualFold(p, rest) }); {
	case rest == "":
		return g, command.Usagef("--for %q names no %s", text, what)
	case what == goalPhase && !known:
		return g, command.Usagef("--for %q: there is no phase %q%s: install plans and operators have %s", text, rest,
			spelling.DidYouMean(rest, phases), strings.Join(phases, ", "))
	}
	return g, nil
}

// phases are those of install plans and operators. Who waits for another one waits in vain.
var phases = []string{
	string(client.ListInstallplansParamsPhaseComplete), string(client.ListOperatorsParamsPhaseDeleting),
	string(client.ListOperatorsParamsPhaseFailed), string(client.ListOperatorsParamsPhaseInstallReady),
	string(client.ListOperatorsParamsPhaseInstalling), string(client.ListOperatorsParamsPhasePending),
	string(client.ListInstallplansParamsPhaseRejected), string(client.ListOperatorsParamsPhaseReplacing),
	string(client.ListInstallplansParamsPhaseRequiresApproval), string(client.ListOperatorsParamsPhaseSucceeded),
	string(client.ListInstallplansParamsPhaseSuperseded), string(client.ListOperatorsParamsPhaseUnknown),
}

// goals are what --for can be completed to.
func goals() []string {
	list := []string{goalDelete, goalState + "=", goalCondition + "="}
	for _, p := range phases {
		list = append(list, goalPhase+"="+p)
	}
	return list
}

// String is what holds when the goal is met.
func (g goal) String() string {
	switch g.what {
	case goalDelete:
		return "it is gone"
	case goalCondition:
		return "condition " + g.name + " is " + g.want
	case goalLatest:
		return "its operator is installed at the latest version"
	}
	return g.what + " is " + g.want
}

// standing is how an object stands: what the API's shapes have in common.
type standing struct {
	Phase       string            `json:"phase"`
	State       string            `json:"state"`
	Conditions  []model.Condition `json:"conditions"`
	InstallPlan *model.PlanRef    `json:"installPlan"`
}

func readStanding(v any) (standing, error) {
	var o struct {
		standing
		Status json.RawMessage `json:"status"` // of some kinds it is a list, which has none of this
	}
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, &o)
	}
	if err == nil && bytes.HasPrefix(o.Status, []byte("{")) {
		err = json.Unmarshal(o.Status, &o.standing)
	}
	return o.standing, err
}

// needsApproval says that the install plan, or that of the subscription, waits for a person.
func (s standing) needsApproval() bool {
	if s.InstallPlan != nil {
		return s.InstallPlan.Phase == string(installplan.RequiresApproval)
	}
	return s.Phase == string(installplan.RequiresApproval)
}

// String says how a subscription stands, and what is in its way.
func (s standing) String() string {
	var text strings.Builder
	text.WriteString("state is " + printer.Or(s.State, printer.None))
	text.WriteString(", phase is " + printer.Or(s.Phase, printer.None))
	for _, c := range s.Conditions {
		if c.Status == "True" {
			text.WriteString(", " + c.Type + ": " + c.Message)
		}
	}
	return text.String()
}

// met says whether an object that exists is as wanted, and how it is. Letters' case is no difference, as with kubectl.
func (g goal) met(s standing) (bool, string) {
	now := ""
	switch g.what {
	case goalDelete:
		return false, "it exists"
	case goalPhase:
		now = s.Phase
	case goalState:
		now = s.State
	case goalCondition:
		for _, c := range s.Conditions {
			if strings.EqualFold(c.Type, g.name) {
				now = c.Status
			}
		}
		if now == "" {
			return false, "it has no condition " + g.name
		}
		return strings.EqualFold(now, g.want), "condition " + g.name + " is " + now
	case goalLatest:
		return s.State == model.StateAtLatestKnown && s.Phase == kinds.PhaseSucceeded, s.String()
	}
	return strings.EqualFold(now, g.want), g.what + " is " + printer.Or(now, printer.None)
}
