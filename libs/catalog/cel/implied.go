package cel

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Names of the keys that rules find in properties.
const (
	keyType  = "type"
	keyValue = "value"
)

// Property is a property that a bundle must have for a rule to hold: of a type, with these texts among the
// values of its keys.
type Property struct {
	Type   string
	Fields map[string]string
}

// Implied are properties that every bundle has for which the rule holds, as far as the text of the rule tells:
// those that it asks for by properties.exists(p, p.type == "…" && p.value.key == "…"), alone or joined by &&.
// They lead to the few bundles that are worth asking.
func (r *Rule) Implied() []Property { return r.implied }

func implied(e ast.Expr) (out []Property) {
	for _, part := range conjunction(e) {
		if p, ok := existing(part); ok {
			out = append(out, p)
		}
	}
	return out
}

// conjunction are the parts that are all true where e is: an error in one of them does not make e true.
func conjunction(e ast.Expr) []ast.Expr {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.LogicalAnd {
		return []ast.Expr{e}
	}
	var out []ast.Expr
	for _, a := range e.AsCall().Args() {
		out = append(out, conjunction(a)...)
	}
	return out
}

// existing reads properties.exists(p, …), which the parser has turned into a loop that begins with false and
// joins by ||.
func existing(e ast.Expr) (p Property, ok bool) {
	if e.Kind() != ast.ComprehensionKind {
		return p, false
	}
	loop := e.AsComprehension()
	step := loop.LoopStep()
	if !named(loop.IterRange(), variable) || loop.AccuInit().Kind() != ast.LiteralKind ||
		loop.AccuInit().AsLiteral() != types.False ||
		!named(loop.Result(), loop.AccuVar()) || step.Kind() != ast.CallKind ||
		step.AsCall().FunctionName() != operators.LogicalOr {
		return p, false
	}
	args := step.AsCall().Args()
	if len(args) != 2 || !named(args[0], loop.AccuVar()) {
		return p, false
	}
	p.Fields = map[string]string{}
	for _, part := range conjunction(args[1]) {
		p.take(part, loop.IterVar())
	}
	return p, p.Type != ""
}

// take notes what an equality says of the property that item stands for.
func (p *Property) take(e ast.Expr, item string) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.Equals {
		return
	}
	args := e.AsCall().Args()
	for _, side := range [][2]ast.Expr{{args[0], args[1]}, {args[1], args[0]}} {
		path := pathOf(side[0], item)
		switch {
		case len(path) == 1 && path[0] == keyType:
			if t, ok := literal(side[1]); ok {
				p.Type = t
			}
		case len(path) == 2 && path[0] == keyValue:
			if t, ok := literal(side[1]); ok {
				p.Fields[path[1]] = t
			}
		case len(path) == 1 && path[0] == keyValue && side[1].Kind() == ast.MapKind:
			p.takeMap(side[1].AsMap())
		}
	}
}

func (p *Property) takeMap(m ast.MapExpr) {
	for _, entry := range m.Entries() {
		k, isText := literal(entry.AsMapEntry().Key())
		v, ok := literal(entry.AsMapEntry().Value())
		if isText && ok {
			p.Fields[k] = v
		}
	}
}

// pathOf are the keys of item.a.b; nil for anything else.
func pathOf(e ast.Expr, item string) (keys []string) {
	for e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly() {
		keys = append([]string{e.AsSelect().FieldName()}, keys...)
		e = e.AsSelect().Operand()
	}
	if !named(e, item) {
		return nil
	}
	return keys
}

func named(e ast.Expr, name string) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == name }

func literal(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	t, ok := e.AsLiteral().(types.String)
	return string(t), ok
}
