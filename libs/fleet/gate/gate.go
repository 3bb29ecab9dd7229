package gate

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/reach"
)

// Bounds of gates.
const (
	// MaxGates bounds those of a wave: each is evaluated again and again while it waits.
	MaxGates = 10
	// MaxText bounds addresses and queries.
	MaxText = 2048
	// MaxSuccesses is more than tells anything about chance.
	MaxSuccesses = 20
	// MinIntervalSeconds spares who is asked; MaxIntervalSeconds is an hour.
	MinIntervalSeconds = 5
	MaxIntervalSeconds = 3600
	// MaxTimeoutSeconds is how long somebody who is asked may take, at most: others wait for the place.
	MaxTimeoutSeconds = 30
	// MinDeadlineSeconds leaves time for an evaluation; MaxDeadlineSeconds is a week.
	MinDeadlineSeconds = 30
	MaxDeadlineSeconds = 7 * 24 * 3600
)

// Defaults of gates.
const (
	DefaultStatus          = 200
	DefaultIntervalSeconds = 30
	DefaultTimeoutSeconds  = 10
	DefaultDeadlineSeconds = 30 * 60
)

// Types are the types of gates.
func Types() []string {
	return []string{
		events.GateOperatorConditions, events.GateCEL, events.GateHTTP, events.GatePrometheus, events.GateWebhook,
	}
}

// asks says which types ask an address.
func asks(kind string) bool {
	return kind == events.GateHTTP || kind == events.GatePrometheus || kind == events.GateWebhook
}

// Normal writes out the defaults of a gate.
func Normal(g events.RolloutGate) events.RolloutGate {
	fill := func(text *string, to string) {
		if *text == "" {
			*text = to
		}
	}
	fill(&g.When, events.GateAfter)
	fill(&g.FailurePolicy, events.GateWaits)
	if g.Type == events.GateHTTP && g.Status == 0 {
		g.Status = DefaultStatus
	}
	if g.Successes == 0 {
		g.Successes = 1
	}
	if g.IntervalSeconds == 0 {
		g.IntervalSeconds = DefaultIntervalSeconds
	}
	if asks(g.Type) && g.TimeoutSeconds == 0 {
		g.TimeoutSeconds = DefaultTimeoutSeconds
	}
	if g.DeadlineSeconds == 0 {
		g.DeadlineSeconds = DefaultDeadlineSeconds
	}
	return g
}

// Problem is what is wrong with a field of a gate.
type Problem struct {
	Field string // of the JSON
	Text  string // a sentence
}

// Check says what is wrong with a gate, beside its name, that has its defaults; nothing where it can be used.
func Check(g events.RolloutGate) (out []Problem) {
	add := func(field, format string, args ...any) {
		out = append(out, Problem{field, fmt.Sprintf(format, args...)})
	}
	fits := func(field string, given bool, types ...string) {
		has := false
		for _, t := range types {
			has = has || t == g.Type
		}
		if given && !has {
			add(field, "%s is of gates of type %s, and this one is of type %s: leave it out", field,
				strings.Join(types, " and "), g.Type)
		}
	}
	fits("expression", g.Expression != "", events.GateCEL, events.GateHTTP, events.GatePrometheus)
	fits("query", g.Query != "", events.GatePrometheus)
	fits("status", g.Status != 0, events.GateHTTP)
	fits("url", g.URL != "", events.GateHTTP, events.GatePrometheus, events.GateWebhook)
	fits("timeoutSeconds", g.TimeoutSeconds != 0, events.GateHTTP, events.GatePrometheus, events.GateWebhook)
	if asks(g.Type) {
		if why := checkURL(g.URL); why != "" {
			add("url", "%s", why)
		}
		within(add, "timeoutSeconds", g.TimeoutSeconds, 1, MaxTimeoutSeconds)
	}
	if g.Type == events.GateHTTP {
		within(add, "status", int64(g.Status), 100, 599)
	}
	if g.Type == events.GatePrometheus && (g.Query == "" || len(g.Query) > MaxText) {
		add("query", "a gate of type %s has a query of at most %d characters", g.Type, MaxText)
	}
	checkExpression(g, add)
	within(add, "successes", int64(g.Successes), 1, MaxSuccesses)
	within(add, "intervalSeconds", g.IntervalSeconds, MinIntervalSeconds, MaxIntervalSeconds)
	within(add, "deadlineSeconds", g.DeadlineSeconds, MinDeadlineSeconds, MaxDeadlineSeconds)
	return out
}

func checkExpression(g events.RolloutGate, add func(field, format string, args ...any)) {
	switch {
	case g.Expression == "" && (g.Type == events.GateCEL || g.Type == events.GatePrometheus):
		add("expression", "a gate of type %s has an expression that has to hold", g.Type)
	case len(g.Expression) > MaxExpression:
		add("expression", "the expression has %d characters, %d are allowed", len(g.Expression), MaxExpression)
	case g.Expression == "" || environments[g.Type] == nil:
	default:
		if _, err := Compile(g.Type, g.Expression); err != nil {
			add("expression", "the expression %q cannot be used: %s", g.Expression, err)
		}
	}
}

func within(add func(field, format string, args ...any), field string, n, from, to int64) {
	if n < from || n > to {
		add(field, "%s is %d: want %d to %d", field, n, from, to)
	}
}

// checkURL says why an address cannot be asked; "" where it can. Where it leads is looked at when it is asked. It
// stands in the log: what could be a credential is refused.
func checkURL(given string) string {
	u, err := url.Parse(given)
	if err != nil || len(given) > MaxText || reach.SafeURL(given) != nil || u.RawQuery != "" || u.ForceQuery ||
		u.Fragment != "" {
		return fmt.Sprintf("the address is none that a gate can ask: want https://HOST/PATH of at most %d characters, "+
			"without a user, a query or a fragment, since it stands in the event log; plain http goes to this "+
			"machine alone", MaxText)
	}
	return ""
}
