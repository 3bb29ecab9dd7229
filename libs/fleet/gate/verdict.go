package gate

import (
	"encoding/json"
	"regexp"

	"github.com/chandler-fleet/chandler/libs/events"
)

// Codes of verdicts.
const (
	CodeConditionFalse   = "ConditionFalse"   // the expression does not hold
	CodeExpressionFailed = "ExpressionFailed" // it cannot be evaluated: a field that is not there, too much work
	CodeOperatorFailed   = "OperatorFailed"
	CodeOperatorMissing  = "OperatorMissing" // another version is there, or none
	CodeOtherContent     = "OtherContent"
	CodeOperatorNotReady = "OperatorNotReady"
	CodeNotUpgradeable   = "NotUpgradeable" // as after an upgrade that migrates still
	CodeClusterAway      = "ClusterAway"
	CodeHolding          = "Holding" // it holds, and has to hold more often in a row
)

// Result is what one evaluation came to.
type Result struct {
	// Holds says that the gate is as wanted.
	Holds bool
	// Definite says, where it does not hold, that this is an answer: that an address did not answer, or a cluster has
	// not said anything, is none.
	Definite bool
	// Verdict is one that does not depend on the failure policy; "" for one that does.
	Verdict string
	Code    string
}

// Of is what an evaluation means. successes is how often the gate has held in a row before; the same with this one
// is returned.
func (r Result) Of(g events.RolloutGate, successes int) (verdict, code string, now int) {
	switch {
	case r.Holds && successes+1 < g.Successes:
		return events.VerdictWait, CodeHolding, successes + 1
	case r.Holds:
		return events.VerdictPass, r.Code, successes + 1
	case r.Verdict != "":
		return r.Verdict, r.Code, 0
	case r.Definite && g.FailurePolicy == events.GateFails:
		return events.VerdictFail, r.Code, 0
	default:
		return events.VerdictWait, r.Code, 0
	}
}

// OfExpression is the result of an expression.
func OfExpression(holds bool, err error) Result {
	switch {
	case err != nil:
		return Result{Code: CodeExpressionFailed, Definite: true}
	case !holds:
		return Result{Code: CodeConditionFalse, Definite: true}
	default:
		return Result{Holds: true}
	}
}

// OperatorConditions holds where the operators of all clusters that the rollout has changed run, are what it brings,
// and let themselves be upgraded. One that failed or has gone fails the gate.
func OperatorConditions(target events.RolloutTarget, clusters []Cluster) Result {
	out := Result{Holds: true}
	for _, c := range clusters {
		if c.State != events.ClusterSucceeded {
			continue // the budgets look at it
		}
		switch r := operatorOf(target, c); {
		case r.Verdict == events.VerdictFail:
			return r
		case !r.Holds && out.Holds:
			out = r
		}
	}
	return out
}

func operatorOf(target events.RolloutTarget, c Cluster) Result {
	fail := func(code string) Result { return Result{Verdict: events.VerdictFail, Code: code} }
	switch {
	case c.Away: // what is known of it may be old
		return Result{Code: CodeClusterAway}
	case c.CSV != target.CSV:
		return fail(CodeOperatorMissing)
	case c.Content != target.Content:
		return fail(CodeOtherContent)
	case c.Phase == "Failed":
		return fail(CodeOperatorFailed)
	case c.Phase != "Succeeded":
		return Result{Code: CodeOperatorNotReady, Definite: true}
	case !c.Upgradeable:
		return Result{Code: CodeNotUpgradeable, Definite: true}
	default:
		return Result{Holds: true}
	}
}

// CodeVerdictNotReadable says that a webhook did not answer with a verdict.
const CodeVerdictNotReadable = "VerdictNotReadable"

// code is what a webhook may give for a reason: a word, no sentence.
var code = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,62}$`)

// WebhookVerdict reads the answer of a webhook, {"verdict": "Pass", "reason": "Code"}. A reason that is no code is left
// out: it would be free text in the log.
func WebhookVerdict(answer []byte) Result {
	var a struct {
		Verdict string `json:"verdict"`
		Reason  string `json:"reason"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return Result{Code: CodeVerdictNotReadable}
	}
	if !code.MatchString(a.Reason) {
		a.Reason = ""
	}
	switch a.Verdict {
	case events.VerdictPass:
		return Result{Holds: true, Code: a.Reason}
	case events.VerdictFail, events.VerdictWait:
		return Result{Verdict: a.Verdict, Code: a.Reason}
	default:
		return Result{Code: CodeVerdictNotReadable}
	}
}
