package hubclient

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// The bounds of a report. What a cluster says in texts is for people at a terminal, and may be as long as an object.
const (
	// maxText bounds one message: the hub keeps no more of it.
	maxText = 4 << 10
	// maxCode bounds a code that somebody in the cluster chose, such as the reason of an OperatorCondition.
	maxCode = 256
	// shortText bounds one message of a report that does not fit.
	shortText = 256
	// fewComponents, fewDrifts and fewLeft are how many objects each operator keeps before it keeps none: enough to see
	// what is the matter.
	fewComponents = 20
	fewDrifts     = 20
	fewLeft       = 100
	// fewTransitions are those that an install takes.
	fewTransitions = 5
)

// stages are what a report goes without if it does not fit, the least important first. over is by how many bytes it
// does not. Whoever adds to a report adds where it goes: what no stage takes out must be small, as phases and outcomes
// are.
func stages() []func(r *protocol.ScopeReport, over int) {
	each := func(do func(c *protocol.CSVReport)) func(*protocol.ScopeReport, int) {
		return func(r *protocol.ScopeReport, _ int) {
			for i := range r.CSVs {
				do(&r.CSVs[i])
			}
		}
	}
	return []func(*protocol.ScopeReport, int){
		each(cutValues), each(cutFields), each(cutComponentTexts),
		each(func(c *protocol.CSVReport) { cutComponents(c, fewComponents) }),
		each(func(c *protocol.CSVReport) { cutComponents(c, 0) }),
		each(cutRights), each(func(c *protocol.CSVReport) { cutDrifts(c, fewDrifts) }), each(cutRequirements),
		each(func(c *protocol.CSVReport) { cutDrifts(c, 1) }), cutTexts,
		func(r *protocol.ScopeReport, _ int) { cutLeft(r, fewLeft) },
		func(r *protocol.ScopeReport, _ int) { cutLeft(r, 0) },
		each(func(c *protocol.CSVReport) { cutHistory(c, fewTransitions) }),
		cutStepLogs, cutGroup,
		each(func(c *protocol.CSVReport) { cutHistory(c, 1) }),
	}
}

// fit returns a report as it is sent, with its JSON: texts bounded, and, where it has more than limit bytes, without
// what is least important (stages), which Cut counts. What is given is not changed. errs.TooLarge: nothing is left to
// take out.
func fit(r protocol.ScopeReport, limit int) (sent protocol.ScopeReport, body []byte, err error) {
	r = bound(r)
	sent, body, err = encode(r)
	for _, cut := range stages() {
		if err != nil || len(body) <= limit {
			return sent, body, err
		}
		cut(&r, len(body)-limit)
		sent, body, err = encode(r)
	}
	if err == nil && len(body) > limit {
		err = errs.New(errs.TooLarge,
			"the report of namespace %s has %d bytes in its shortest form, a message takes %d", r.Scope.Namespace,
			len(body), limit)
	}
	return sent, body, err
}

// encode returns a report with the sum of what is left out, and its JSON.
func encode(r protocol.ScopeReport) (protocol.ScopeReport, []byte, error) {
	for _, c := range r.CSVs {
		r.Cut = r.Cut.Plus(c.Cut)
	}
	for _, x := range r.Removals {
		r.Cut.Left += x.Cut
	}
	body, err := json.Marshal(r)
	return r, body, errs.Wrap(errs.Internal, err, "encode the report of namespace %s", r.Scope.Namespace)
}

// bound copies what is changed later, and bounds every text.
func bound(r protocol.ScopeReport) protocol.ScopeReport {
	r.Plans, r.CSVs, r.Removals = slices.Clone(r.Plans), slices.Clone(r.CSVs), slices.Clone(r.Removals)
	for i := range r.CSVs {
		c := &r.CSVs[i]
		c.History, c.Drift, c.Components = slices.Clone(c.History), slices.Clone(c.Drift), slices.Clone(c.Components)
		c.NotReady, c.Conditions = slices.Clone(c.NotReady), slices.Clone(c.Conditions)
		if c.Condition != nil {
			condition := *c.Condition
			c.Condition = &condition
			c.Cut.Messages += shorten(&condition.Reason, maxCode)
		}
	}
	if r.Group != nil {
		g := *r.Group
		g.Conditions = slices.Clone(g.Conditions)
		r.Group = &g
	}
	limitTexts(&r, maxText)
	return r
}

// limitTexts bounds every message.
func limitTexts(r *protocol.ScopeReport, most int) {
	for i := range r.CSVs {
		c := &r.CSVs[i]
		for n := range c.History {
			c.Cut.Messages += shorten(&c.History[n].Message, most)
		}
		c.Cut.Messages += shorten(&c.Message, most)
		for n := range c.Components {
			c.Cut.Messages += shorten(&c.Components[n].Message, most)
		}
		for n := range c.NotReady {
			c.Cut.Messages += shorten(&c.NotReady[n].Message, most)
		}
		for n := range c.Conditions {
			c.Cut.Messages += shorten(&c.Conditions[n].Message, most)
		}
		for n := range c.Drift {
			c.Cut.Messages += shorten(&c.Drift[n].Reason, most)
		}
		if c.Condition != nil {
			c.Cut.Messages += shorten(&c.Condition.Message, most)
		}
	}
	for i := range r.Plans {
		r.Cut.Messages += shorten(&r.Plans[i].Message, most)
	}
	for i := range r.Removals {
		r.Cut.Messages += shorten(&r.Removals[i].Message, most)
	}
	if r.Group != nil {
		for i := range r.Group.Conditions {
			r.Cut.Messages += shorten(&r.Group.Conditions[i].Message, most)
		}
	}
}

const ellipsis = "…"

// shorten cuts a text between characters, and returns 1 where it was too long.
func shorten(text *string, most int) int {
	if len(*text) <= most {
		return 0
	}
	*text = strings.ToValidUTF8((*text)[:most-len(ellipsis)], "") + ellipsis
	return 1
}

func cutValues(c *protocol.CSVReport) {
	c.Cut.Fields = 0
	for i := range c.Drift {
		c.Drift[i].Fields = slices.Clone(c.Drift[i].Fields)
		for n := range c.Drift[i].Fields {
			c.Drift[i].Fields[n].Want, c.Drift[i].Fields[n].Have = nil, nil
		}
		c.Cut.Fields += len(c.Drift[i].Fields)
	}
}

func cutFields(c *protocol.CSVReport) {
	for i := range c.Drift {
		c.Drift[i].Fields = nil // counted already
	}
}

func cutComponentTexts(c *protocol.CSVReport) {
	for i := range c.Components {
		if c.Components[i].Message != "" {
			c.Components[i].Message = ""
			c.Cut.Messages++
		}
	}
}

// componentCurrent is the state of an object that is as it should be, in kstatus' words.
const componentCurrent = "Current"

// cutComponents keeps the first ones, those before all that are not as they should be.
func cutComponents(c *protocol.CSVReport, most int) {
	if len(c.Components) <= most {
		return
	}
	slices.SortStableFunc(c.Components, func(a, b protocol.Component) int {
		rank := map[bool]int{true: 1}
		return rank[a.Status == componentCurrent] - rank[b.Status == componentCurrent]
	})
	c.Cut.Components += len(c.Components) - most
	c.Components = c.Components[:most]
}

// rights is the field of a requirement that lists the rights of an account.
const rights = "dependents"

// cutRights takes out of the requirements the rights that they list.
func cutRights(c *protocol.CSVReport) {
	var rows []map[string]json.RawMessage
	if json.Unmarshal(c.Requirements, &rows) != nil {
		return
	}
	before := c.Cut.Requirements
	for _, row := range rows {
		if _, lists := row[rights]; lists {
			delete(row, rights)
			c.Cut.Requirements++
		}
	}
	if shorter, err := json.Marshal(rows); err == nil && c.Cut.Requirements > before {
		c.Requirements = shorter
	}
}

func cutRequirements(c *protocol.CSVReport) {
	var rows []json.RawMessage
	if json.Unmarshal(c.Requirements, &rows) == nil {
		c.Cut.Requirements = len(rows)
	}
	c.Requirements = nil
}

func cutDrifts(c *protocol.CSVReport, most int) {
	if len(c.Drift) > most {
		c.Cut.Drifts += len(c.Drift) - most
		c.Drift = c.Drift[:most]
	}
}

// cutTexts keeps the beginning of each message, and of a history only the last one.
func cutTexts(r *protocol.ScopeReport, _ int) {
	for i := range r.CSVs {
		c := &r.CSVs[i]
		for n := range len(c.History) - 1 {
			if c.History[n].Message != "" {
				c.History[n].Message = ""
				c.Cut.Messages++
			}
		}
	}
	limitTexts(r, shortText)
}

func cutLeft(r *protocol.ScopeReport, most int) {
	for i := range r.Removals {
		if x := &r.Removals[i]; len(x.Left) > most {
			x.Cut += len(x.Left) - most
			x.Left = x.Left[:most]
		}
	}
}

// cutHistory leaves out the oldest transitions; the last one is the phase.
func cutHistory(c *protocol.CSVReport, most int) {
	if n := len(c.History) - most; n > 0 {
		c.History = c.History[n:]
		c.Dropped += n
		c.Cut.History += n
	}
}

// cutStepLogs takes out the largest ones, as many as it takes.
func cutStepLogs(r *protocol.ScopeReport, over int) {
	for over > 0 {
		largest := -1
		for i, p := range r.Plans {
			if len(p.StepLog) > 0 && (largest < 0 || len(p.StepLog) > len(r.Plans[largest].StepLog)) {
				largest = i
			}
		}
		if largest < 0 {
			return
		}
		over -= len(r.Plans[largest].StepLog)
		r.Plans[largest].StepLog = nil
		r.Cut.StepLogs++
	}
}

// cutGroup says nothing of the group: a part of its targets would be another group.
func cutGroup(r *protocol.ScopeReport, _ int) {
	if r.Group != nil {
		r.Group = nil
		r.Cut.Groups = 1
	}
}
