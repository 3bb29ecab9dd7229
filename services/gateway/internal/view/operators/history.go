package operators

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// history are the transitions of an operator, as its read model keeps them. A list of a fleet has hundreds of
// thousands, so that they are read in the order in which PostgreSQL writes the keys of jsonb; any other form goes to
// encoding/json.
type history []model.Phase

// Scan implements sql.Scanner.
func (h *history) Scan(src any) error {
	text, ok := src.(string)
	if !ok {
		return errs.New(errs.Internal, "the history of an operator is a %T, not JSON as text", src)
	}
	if list, ok := written(text); ok {
		*h = list
		return nil
	}
	return errs.Wrap(errs.Internal, json.Unmarshal([]byte(text), (*[]model.Phase)(h)), "the history of an operator")
}

// keys are those of a transition, in the order of jsonb: by their length, then by their bytes. Each value is a text.
var keys = [...]string{`{"time": "`, `, "event": "`, `, "phase": "`, `, "reason": "`}

// written reads a history in the form in which PostgreSQL writes it; ok is false where it has another one. The texts
// that it returns are parts of the one given.
func written(text string) (list []model.Phase, ok bool) {
	rest, ok := strings.CutPrefix(text, "[")
	if !ok || strings.Contains(text, `\`) { // an escape, which the cuts below do not know
		return nil, false
	}
	list = make([]model.Phase, 0, strings.Count(rest, keys[0]))
	if rest == "]" {
		return list, true
	}
	for {
		var p model.Phase
		if p, rest, ok = transition(rest); !ok {
			return nil, false
		}
		list = append(list, p)
		if rest == "]" {
			return list, true
		}
		if rest, ok = strings.CutPrefix(rest, ", "); !ok {
			return nil, false
		}
	}
}

// transition reads the transition with which a text begins.
func transition(text string) (p model.Phase, rest string, ok bool) {
	var values [len(keys)]string
	for i, key := range keys {
		if text, ok = strings.CutPrefix(text, key); !ok {
			return p, text, false
		}
		if values[i], text, ok = strings.Cut(text, `"`); !ok {
			return p, text, false
		}
	}
	at, err := time.Parse(time.RFC3339Nano, values[0])
	rest, ok = strings.CutPrefix(text, "}")
	return model.Phase{Time: at, Event: values[1], Phase: values[2], Reason: values[3]}, rest, ok && err == nil
}
