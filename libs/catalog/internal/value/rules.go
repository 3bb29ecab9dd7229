package value

import "encoding/json"

// MaxRules bounds the different rules of the bundles of a package together. Published packages have a handful. To
// compile as many of the greatest size takes about half a second.
const MaxRules = 64

// MaxConstraintDepth bounds how many constraints lie inside each other. Real ones have two or three levels.
const MaxConstraintDepth = 32

// Properties checks the properties of the bundles of one package, and counts their rules, so that no time is spent on
// compiling more than a resolver takes. The zero value is ready.
type Properties struct {
	met   map[string]bool // values of olm.constraint with rules
	rules int
}

// Check returns what is wrong with a property, as Property does; and that it brings too many rules, which are then not
// compiled.
func (p *Properties) Check(typ string, raw json.RawMessage) []Issue {
	if typ == "olm.constraint" && !p.take(raw) {
		return fault(
			"the bundles of the package have more than %d rules together (R-RES-26); use the same rule in more of them",
			MaxRules)
	}
	return Property(typ, raw)
}

// take counts the rules of a constraint, unless it was counted before; ok is false where they are too many.
func (p *Properties) take(raw json.RawMessage) (ok bool) {
	var c constraint
	if len(raw) > MaxConstraintBytes || p.met[string(raw)] || json.Unmarshal(raw, &c) != nil {
		return true // Constraint tells what is wrong
	}
	n := c.rules()
	if n == 0 || p.rules+n > MaxRules {
		return n == 0
	}
	if p.met == nil {
		p.met = map[string]bool{}
	}
	p.met[string(raw)] = true
	p.rules += n
	return true
}

func (c *constraint) rules() int {
	n := 0
	if c.CEL != nil {
		n++
	}
	for _, inner := range []*compound{c.All, c.Any, c.Not} {
		if inner != nil {
			for i := range inner.Constraints {
				n += inner.Constraints[i].rules()
			}
		}
	}
	return n
}
