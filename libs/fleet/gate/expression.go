package gate

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"

	rules "github.com/chandler-fleet/chandler/libs/catalog/cel"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
)

// Bounds of expressions.
const (
	// MaxExpression bounds the text: what is longer is a program, which belongs behind a webhook.
	MaxExpression = 1024
	// maxCost bounds one evaluation, in units that are about one for each value looked at: ten looks at each of ten
	// thousand clusters take a tenth of it.
	maxCost = 1_000_000

	maxDepth      = 32 // of brackets and operators inside each other
	maxRecoveries = 4  // of the parser: the first errors are those that people fix
)

// Cluster is one of the wave, as expressions see it.
type Cluster struct {
	Name   string            `cel:"name"`
	Labels map[string]string `cel:"labels"`
	State  string            `cel:"state"`  // of the rollout: Succeeded, Failed, Unreachable, Skipped
	Reason string            `cel:"reason"` // of that; a code
	// The operator: its ClusterServiceVersion with the version, the phase, and whether it lets itself be upgraded;
	// empty where none is installed.
	CSV         string `cel:"csv"`
	Version     string `cel:"version"`
	Phase       string `cel:"phase"`
	Upgradeable bool   `cel:"upgradeable"`
	Content     string `cel:"content"` // digest of the bundle
	Kubernetes  string `cel:"kubernetes"`
	Away        bool   `cel:"away"` // it does not answer, or is cordoned
}

// Sample is one of the result of a query.
type Sample struct {
	Labels map[string]string `cel:"labels"`
	Value  float64           `cel:"value"`
}

// Expression is one that was compiled.
type Expression struct{ program cel.Program }

// environments are what expressions of a type of gate may name.
var environments = map[string]func() (*cel.Env, error){
	events.GateCEL: environment(
		ext.NativeTypes(reflect.TypeFor[Cluster](), ext.ParseStructTags(true)),
		cel.Variable("clusters", cel.ListType(cel.ObjectType("gate.Cluster"))),
		cel.Variable("total", cel.IntType), cel.Variable("succeeded", cel.IntType), cel.Variable("failed", cel.IntType),
		cel.Variable("unreachable", cel.IntType), cel.Variable("skipped", cel.IntType)),
	events.GateHTTP: environment(cel.Variable("status", cel.IntType), cel.Variable("body", cel.DynType)),
	events.GatePrometheus: environment(
		ext.NativeTypes(reflect.TypeFor[Sample](), ext.ParseStructTags(true)),
		cel.Variable("samples", cel.ListType(cel.ObjectType("gate.Sample"))), cel.Variable("value", cel.DoubleType)),
}

// environment is made for the first expression.
func environment(more ...cel.EnvOption) func() (*cel.Env, error) {
	return sync.OnceValues(func() (*cel.Env, error) {
		return cel.NewEnv(append(more, cel.DefaultUTCTimeZone(true), cel.ParserExpressionSizeLimit(MaxExpression),
			cel.CrossTypeNumericComparisons(true),
			cel.ParserRecursionLimit(maxDepth), cel.ParserErrorRecoveryLimit(maxRecoveries))...)
	})
}

// Compile reads the expression of a gate of a type. Its errors are of kind errs.Invalid, and say where in it.
func Compile(kind, text string) (*Expression, error) {
	of, ok := environments[kind]
	if !ok {
		return nil, errs.New(errs.Invalid, "a gate of type %s has no expression", kind)
	}
	env, err := of()
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "set up the language of gates")
	}
	tree, issues := env.Compile(text)
	if issues.Err() != nil {
		e := issues.Errors()[0]
		why, _, _ := strings.Cut(e.Message, " expecting ") // a list of all that the grammar knows
		why, _, _ = strings.Cut(why, " (in container")
		return nil, errs.New(errs.Invalid, "it does not compile at line %d, column %d: %s", e.Location.Line(),
			e.Location.Column()+1, strings.Join(strings.Fields(why), " "))
	}
	if t := tree.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, errs.New(errs.Invalid, "it gives %s, but must give bool", t)
	}
	program, err := env.Program(tree, cel.CostLimit(maxCost), cel.CostTracking(rules.Meter{}))
	if err != nil {
		return nil, errs.New(errs.Invalid, "it cannot be made ready: %s", err)
	}
	return &Expression{program}, nil
}

// holds evaluates the expression. An error is its own: a field that is not there, a division by zero, too much work.
func (e *Expression) holds(vars map[string]any) (bool, error) {
	out, _, err := e.program.Eval(vars)
	if err != nil {
		return false, err
	}
	if out != types.True && out != types.False {
		return false, errs.New(errs.Invalid, "it gives %s", out.Type().TypeName())
	}
	return out == types.True, nil
}

// HoldsOf evaluates an expression of a CEL gate over the clusters of a wave.
func (e *Expression) HoldsOf(clusters []Cluster) (bool, error) {
	count := map[string]int64{}
	for _, c := range clusters {
		count[c.State]++
	}
	return e.holds(map[string]any{
		"clusters": clusters, "total": int64(len(clusters)), "succeeded": count[events.ClusterSucceeded],
		"failed": count[events.ClusterFailed], "unreachable": count[events.ClusterUnreachable],
		"skipped": count[events.ClusterSkipped],
	})
}

// HoldsOfAnswer evaluates an expression of an HTTP gate. The body is nil where it is no JSON.
func (e *Expression) HoldsOfAnswer(status int, body any) (bool, error) {
	return e.holds(map[string]any{"status": int64(status), "body": body})
}

// HoldsOfSamples evaluates an expression of a Prometheus gate.
func (e *Expression) HoldsOfSamples(samples []Sample) (bool, error) {
	vars := map[string]any{"samples": samples}
	if len(samples) == 1 {
		vars["value"] = samples[0].Value
	}
	return e.holds(vars)
}

// Samples reads the answer of Prometheus to an instant query: a vector or a scalar. What is no number (NaN) is kept: it
// is neither above nor below anything.
func Samples(answer []byte) ([]Sample, error) {
	var a struct {
		Status string `json:"status"`
		Data   struct {
			ResultType string          `json:"resultType"`
			Result     json.RawMessage `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &a); err != nil || a.Status != "success" {
		return nil, errs.New(errs.Invalid, "it is no answer to a query")
	}
	type value [2]any
	type series struct {
		Metric map[string]string `json:"metric"`
		Value  value             `json:"value"`
	}
	var list []series
	var err error
	switch a.Data.ResultType {
	case "vector":
		err = json.Unmarshal(a.Data.Result, &list)
	case "scalar":
		list = []series{{}}
		err = json.Unmarshal(a.Data.Result, &list[0].Value)
	default:
		err = errs.New(errs.Invalid, "it answers with a %s", a.Data.ResultType)
	}
	if err != nil {
		return nil, err
	}
	out := make([]Sample, 0, len(list))
	for _, s := range list {
		text, _ := s.Value[1].(string)
		n, err := strconv.ParseFloat(text, 64)
		if err != nil && !math.IsInf(n, 0) {
			return nil, errs.New(errs.Invalid, "a value is no number")
		}
		if s.Metric == nil {
			s.Metric = map[string]string{}
		}
		out = append(out, Sample{Labels: s.Metric, Value: n})
	}
	return out, nil
}
