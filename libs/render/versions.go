package render

import (
	"strconv"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Semantics names the rules by which Render renders. A change of a single byte of any object is another version: the
// rules before it stay callable under their own name as long as a plan or an installed operator refers to them
// (DESIGN D5; docs/adr says how).
const Semantics = "chandler.render.v1"

// semanticsPrefix is what all names of renderings begin with; a number follows, which grows from release to release.
const semanticsPrefix = "chandler.render.v"

// Renderer turns a bundle into objects by the rules of one version.
type Renderer func(Input) ([]Object, error)

// Versions are the renderings that a program has. The zero value has none.
type Versions struct {
	newest int
	by     map[int]Renderer
}

// Known are those of this program.
var Known = NewVersions(map[string]Renderer{Semantics: Render})

// NewVersions returns a table of renderers by name. It panics on a name that is none: the table is a constant.
func NewVersions(by map[string]Renderer) *Versions {
	v := &Versions{by: map[int]Renderer{}}
	for name, render := range by {
		n, ok := number(name)
		if !ok {
			panic("not the name of a rendering: " + name)
		}
		v.by[n], v.newest = render, max(v.newest, n)
	}
	return v
}

func number(name string) (int, bool) {
	text, ok := strings.CutPrefix(name, semanticsPrefix)
	n, err := strconv.Atoi(text)
	return n, ok && err == nil && n > 0 && strconv.Itoa(n) == text
}

// Newest names the rules by which new plans are rendered.
func (v *Versions) Newest() string { return semanticsPrefix + strconv.Itoa(v.newest) }

// Presence says whether a program has the rules of a name.
type Presence int

// What a program may know of rules.
const (
	Present Presence = iota // it has them
	Ahead                   // a later release has them
	Gone                    // an earlier release had them, or nobody ever did
)

// Presence says whether the rules of a name can be called here.
func (v *Versions) Presence(semantics string) Presence {
	n, ok := number(semantics)
	switch {
	case !ok || n <= v.newest && v.by[n] == nil:
		return Gone
	case n > v.newest:
		return Ahead
	}
	return Present
}

// Render renders by the rules of a name. Rules that are not here are errs.NotFound: others are never taken instead.
func (v *Versions) Render(semantics string, in Input) ([]Object, error) {
	switch v.Presence(semantics) {
	case Present:
	case Ahead:
		return nil, errs.New(errs.NotFound, "rendering %s belongs to a later release; the newest one here is %s", semantics,
			v.Newest())
	case Gone:
		return nil, errs.New(errs.NotFound, "rendering %q is not part of this release, which has %s", semantics, v.Newest())
	}
	n, _ := number(semantics)
	return v.by[n](in)
}
