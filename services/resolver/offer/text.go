package offer

import "strings"

// sentence is the Text of a requirement, built for the whole alone: texts of parts that hold those of their
// parts grow with the square of the depth.
func (r *Requirement) sentence() string {
	var b strings.Builder
	r.write(&b)
	if b.Len() <= maxText {
		return b.String()
	}
	return strings.ToValidUTF8(b.String()[:maxText], "") + "…"
}

// write stops where there is more than is shown.
func (r *Requirement) write(b *strings.Builder) {
	join := " or "
	switch r.op {
	case needAPI, needPackage, needLabel, needRule:
		b.WriteString(r.Text)
		return
	case needAll:
		join = " and "
	case needNot:
		b.WriteString("not ")
	case needAny:
	}
	if len(r.parts) > 1 {
		b.WriteString("(")
	}
	for i, p := range r.parts {
		if b.Len() > maxText {
			return
		}
		if i > 0 {
			b.WriteString(join)
		}
		p.write(b)
	}
	if len(r.parts) > 1 {
		b.WriteString(")")
	}
}
