package conformance

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/chandler-fleet/chandler/services/resolver/conformance"
)

// maxShown bounds what is told of one difference, in letters: an explanation of fifty subscriptions has many.
// The whole of it is in the result as JSON.
const maxShown = 480

// line is a line of the table.
type line struct {
	set, topic                                    string
	cases, equal, oneOf, meant, different, unread int
}

// print writes the table, the reasons of what is meant to differ, every difference, and a last line that says it all.
func (c comparison) print(w io.Writer) error {
	if err := c.table(w); err != nil {
		return err
	}
	c.reasons(w)
	for _, v := range c.Verdicts {
		switch {
		case v.Error != "":
			fmt.Fprintln(w)
			wrapped(w, "", "  ", "cannot be resolved: "+v.Error)
		case v.Verdict == conformance.Different:
			fmt.Fprintln(w)
			fmt.Fprintln(w, clean("different: "+v.File))
			for _, d := range v.Differences {
				if text := []rune(d); len(text) > maxShown {
					d = string(text[:maxShown]) + " …"
				}
				wrapped(w, "  - ", "    ", d)
			}
		}
	}
	fmt.Fprintln(w)
	wrapped(w, "", "", c.verdict())
	return nil
}

func (c comparison) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SET\tTOPIC\tCASES\tEQUAL\tONE OF\tMEANT\tDIFFERENT")
	for _, l := range c.lines() {
		fmt.Fprintf(t, "%s\t%s\t%5d\t%5d\t%6d\t%5d\t%9d\n", clean(l.set), clean(l.topic), l.cases, l.equal, l.oneOf,
			l.meant, l.different+l.unread)
	}
	return t.Flush()
}

// verdict is the last line.
func (c comparison) verdict() string {
	meant := 0
	for _, n := range c.Meant {
		meant += n
	}
	text := fmt.Sprintf("%s: %d as OLM, %d another one of what OLM does, %d meant to differ, %d different",
		count(c.Cases, "case"), c.Equal, c.OneOf, meant, c.Different)
	if c.Unread > 0 {
		text += fmt.Sprintf(", %d cannot be resolved", c.Unread)
	}
	return text
}

func (c comparison) reasons(w io.Writer) {
	if len(c.Meant) == 0 {
		return
	}
	fmt.Fprintln(w, "\nmeant to differ:")
	for _, r := range slices.Sorted(maps.Keys(c.Meant)) {
		wrapped(w, fmt.Sprintf("  %3d  ", c.Meant[r]), "       ", fmt.Sprintf("%s: %s", r, c.Reasons[r]))
	}
}

// lines are those of the table, in order of set and topic, with a sum of all at the end.
func (c comparison) lines() []line {
	by := map[[2]string]*line{}
	total := line{set: "all"}
	for _, v := range c.Verdicts {
		key := [2]string{v.Set, v.Topic}
		if by[key] == nil {
			by[key] = &line{set: v.Set, topic: v.Topic}
		}
		by[key].add(v)
		total.add(v)
	}
	out := []line{}
	for _, l := range by {
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b line) int {
		return cmp.Or(
			cmp.Compare(a.set, b.set), cmp.Compare(a.topic, b.topic))
	})
	return append(out, total)
}

func (l *line) add(v Compared) {
	l.cases++
	switch {
	case v.Error != "":
		l.unread++
	case v.Verdict == conformance.Equal:
		l.equal++
	case v.Verdict == conformance.OneOf:
		l.oneOf++
	case v.Verdict == conformance.Meant:
		l.meant++
	default:
		l.different++
	}
}
