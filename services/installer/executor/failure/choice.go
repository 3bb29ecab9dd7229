package failure

import (
	"fmt"
	"strings"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// ChoiceNeededError is the error that a person has to choose whose form of an object holds.
type ChoiceNeededError struct{ protocol.SharedObject }

// Error names the object, both owners, what differs, and what can be done.
func (c ChoiceNeededError) Error() string {
	return fmt.Sprintf("%s is that of %s, and %s brings it in another form: %s; %s", c.ObjectRef, c.Holder, c.Operator,
		differences(c.Differences), c.suggestion())
}

// suggestion says what approvers can choose.
func (c ChoiceNeededError) suggestion() string {
	if c.Refused != "" {
		return "the form of " + c.Operator + " cannot take its place (" + c.Refused +
			"): approve the plan with keep for " + c.ChoiceName() + ", or uninstall one of the two"
	}
	return "approve the plan with keep or take for " + c.ChoiceName()
}

// maxDifferences is how many fields a sentence names; the check of the plan has more.
const maxDifferences = 3

func differences(list []protocol.FieldDrift) string {
	var out []string
	for _, f := range list[:min(len(list), maxDifferences)] {
		out = append(out, fmt.Sprintf("%s is %s, not %s", f.Path, valueText(f.Have), valueText(f.Want)))
	}
	if n := len(list) - maxDifferences; n > 0 {
		out = append(out, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(out, "; ")
}

func valueText(raw []byte) string {
	if len(raw) == 0 {
		return "(not told)"
	}
	return string(raw)
}
