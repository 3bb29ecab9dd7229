package operator

import (
	"slices"
	"strconv"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// MaxOverrides bounds the overrides of one operator: one type has an effect, and all of them travel in the message of
// the namespace.
const MaxOverrides = 8

// Override sets all overrides of the operator's OperatorCondition (R-COND-6).
type Override struct {
	Overrides []events.ConditionOverride
}

// RemoveOverrides ends all of them.
type RemoveOverrides struct{}

func (Override) operatorCommand()        {}
func (RemoveOverrides) operatorCommand() {}

func override(s State, c Override) ([]events.Payload, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if !s.Installed {
		return nil, notInstalled(s.Name)
	}
	want := slices.SortedFunc(slices.Values(c.Overrides), func(a, b events.ConditionOverride) int {
		return strings.Compare(a.Type, b.Type)
	})
	if slices.Equal(want, s.Overrides) {
		return nil, nil
	}
	return []events.Payload{events.OperatorConditionOverridden{Overrides: want}}, nil
}

func (c Override) check() error {
	var v rule.Violations
	switch n := len(c.Overrides); {
	case n == 0:
		v.Addf("/conditions", rule.Required, "no override is given; DELETE ends those that are set")
	case n > MaxOverrides:
		v.Addf("/conditions", rule.MaxItems, "%d overrides are given, %d are allowed", n, MaxOverrides)
		return v.Err()
	}
	seen := map[string]bool{}
	for i, o := range c.Overrides {
		at := "/conditions/" + strconv.Itoa(i)
		v.ConditionType(at+"/type", o.Type)
		if seen[o.Type] {
			v.Addf(at+"/type", rule.Unique, "condition %q is overridden twice: give it once", o.Type)
		}
		seen[o.Type] = true
		v.OneOf(at+"/status", o.Status, "True", "False", "Unknown")
		v.ConditionReason(at+"/reason", o.Reason)
	}
	return v.Err()
}

func removeOverrides(s State) ([]events.Payload, error) {
	switch {
	case !s.Installed:
		return nil, notInstalled(s.Name)
	case len(s.Overrides) == 0:
		return nil, errs.New(errs.NotFound, "no condition of operator %q in namespace %q of cluster %q is overridden",
			s.Name.Name, s.Name.Namespace, s.Name.Cluster)
	}
	return []events.Payload{events.OperatorConditionOverridesRemoved{}}, nil
}
