package cel

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Bounds of a rule and of its work.
const (
	// MaxRuleBytes bounds the text of one rule. Those in use have some hundred bytes; a longer one is better
	// written as an olm.constraint with all, any and not. One of this size takes up to 10 ms to compile, and the
	// time grows with the square of the size.
	MaxRuleBytes = 2 << 10
	// MaxCost bounds one evaluation, in units that are about one for each value looked at. To ask each of 34
	// properties, the most of 2,236 published bundles, for type, name and version costs some 800; what costs
	// this takes some milliseconds.
	MaxCost = 20_000
	// MaxPropertyBytes bounds the properties of a bundle that rules look at, together. The largest of those
	// bundles has 3 KB of them.
	MaxPropertyBytes = 128 << 10

	maxDepth      = 64  // of brackets and operators inside each other
	maxRecoveries = 4   // of the parser: the first errors are those that people fix
	maxQuoted     = 200 // bytes of a rule that an error quotes
	maxGathered   = 64  // values that a rule puts into lists and maps, beside constants

	// Of what a compiled rule takes in memory, measured: its program is some 25 times as long as its text.
	ruleWeight     = 8 << 10
	ruleByteWeight = 28
	// compileUnit is the cost of compiling a byte of a rule of the greatest size, in the units of an evaluation.
	compileUnit = 15
)

// Rule is a compiled rule. It is immutable and safe for concurrent use.
type Rule struct {
	text    string
	program cel.Program
	implied []Property
}

// Compile reads a rule, or returns what it made of the same text before. Its errors are of kind errs.Invalid
// and name the rule and the place in it.
func Compile(rule string) (*Rule, error) {
	return rules.get(rule, compile)
}

func compile(rule string) (*Rule, error) {
	if len(rule) > MaxRuleBytes {
		return nil, invalid(rule, "has %d bytes, more than %d; divide it by all, any and not", len(rule), MaxRuleBytes)
	}
	env, err := environment()
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "set up the language of rules")
	}
	tree, issues := env.Compile(rule)
	if issues.Err() != nil {
		e := issues.Errors()[0]
		why, _, _ := strings.Cut(e.Message, " expecting ") // a list of all that the grammar knows
		return nil, invalid(rule, "does not compile at line %d, column %d: %s", e.Location.Line(),
			e.Location.Column()+1, why)
	}
	if t := tree.OutputType(); !t.IsExactType(cel.BoolType) {
		return nil, invalid(rule, "gives %s, but must give bool", typeName(t))
	}
	if why := unbounded(tree); why != "" {
		return nil, invalid(rule, "%s", why)
	}
	program, err := env.Program(tree, cel.CostLimit(MaxCost), cel.CostTracking(Meter{}), cel.CustomDecoratorV2(inOrder),
		cel.CustomDecoratorV2(bounded))
	if err != nil {
		return nil, invalid(rule, "cannot be made ready: %s", err)
	}
	return &Rule{text: rule, program: program, implied: implied(tree.NativeRep().Expr())}, nil
}

// typeName names a type as authors think of it.
func typeName(t *cel.Type) string {
	if t.IsExactType(cel.AnyType) || t.IsExactType(cel.DynType) {
		return "a value of any type"
	}
	return t.String()
}

// unbounded says why the work of a rule could not be bounded while it is evaluated: it makes values that cost
// nothing to make and much to look at.
func unbounded(tree *cel.Ast) (why string) {
	gathered := 0
	gather := func(e ast.Expr) {
		if e.Kind() != ast.LiteralKind {
			gathered++
		}
	}
	ast.PostOrderVisit(tree.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.StructKind:
			why = "makes a message, which no property holds; write a map: {'key': value}"
		case ast.ListKind:
			for _, element := range e.AsList().Elements() {
				gather(element)
			}
		case ast.MapKind:
			for _, entry := range e.AsMap().Entries() {
				gather(entry.AsMapEntry().Key())
				gather(entry.AsMapEntry().Value())
			}
		default:
		}
	}))
	if why == "" && gathered > maxGathered {
		why = fmt.Sprintf("puts %d values that are no constants into lists and maps, more than %d", gathered,
			maxGathered)
	}
	return why
}

// invalid is the fault of a rule, on one line.
func invalid(rule, format string, args ...any) error {
	why := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	return errs.New(errs.Invalid, "cel rule %q %s", quoted(rule), why).At("rule", "R-RES-26")
}

func quoted(rule string) string {
	if len(rule) <= maxQuoted {
		return rule
	}
	return strings.ToValidUTF8(rule[:maxQuoted], "") + "…"
}

// Text is the rule as its author wrote it.
func (r *Rule) Text() string { return r.text }

// Weight is about how many bytes a compiled rule with that text takes in memory, for caches.
func Weight(rule string) int { return ruleWeight + ruleByteWeight*len(rule) }

// CompileCost is what it costs to compile a rule, in the units of Eval.
func CompileCost(rule string) int { return compileUnit * min(len(rule), MaxRuleBytes) }

// Bundle holds the properties of one bundle in the form that rules read. It is immutable and safe for concurrent use.
type Bundle struct {
	properties map[string]any // the variables of a rule; nil if no rule can hold
	cost       int            // of reading the properties
}

// NewBundle prepares the properties of a bundle, by type, for rules. Numbers become doubles. If a property is no JSON,
// or the properties have more than MaxPropertyBytes together, no rule holds for the bundle.
func NewBundle(properties iter.Seq2[string, json.RawMessage]) *Bundle {
	size := 0
	var list []any
	for typ, raw := range properties {
		var value any
		if size += len(typ) + len(raw); size > MaxPropertyBytes || json.Unmarshal(raw, &value) != nil {
			return &Bundle{cost: min(size, MaxPropertyBytes) / textUnit}
		}
		list = append(list, map[string]any{keyType: typ, keyValue: value})
	}
	return &Bundle{properties: map[string]any{variable: valueOf(list)}, cost: size / textUnit}
}

// Eval evaluates the rule for a bundle. The cost is the number of steps of the evaluation, at most MaxCost, and one for
// each 10 bytes of the properties. The cost is the same each time and on every machine.
// A rule that ends in an error, or takes more steps than MaxCost, does not hold (R-RES-26).
func (r *Rule) Eval(b *Bundle) (holds bool, cost int) {
	if b.properties == nil {
		return false, b.cost
	}
	out, details, err := r.program.Eval(b.properties)
	steps := uint64(MaxCost)
	if taken := details.ActualCost(); taken != nil {
		steps = min(*taken, MaxCost)
	}
	return err == nil && out == types.True, b.cost + int(steps)
}
