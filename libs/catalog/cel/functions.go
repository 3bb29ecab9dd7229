package cel

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/blang/semver/v4"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Bounds of what functions are given.
const (
	maxVersionBytes = 256 // of a version; real ones have some 20
	maxPatternBytes = 1 << 10
	maxPatternSize  = 4096 // parts of an expression with its repetitions written out
)

// compareVersions is less than, equal to or greater than zero as the version a is older, the same or newer.
// "v1" and "1.0" are versions, too.
func compareVersions(a, b ref.Val) ref.Val {
	x, err := version(a)
	if err != nil {
		return types.WrapErr(err)
	}
	y, err := version(b)
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Int(x.Compare(y))
}

// version reads a string or a number; nothing else is written as a version is.
func version(v ref.Val) (semver.Version, error) {
	var text string
	switch v := v.(type) {
	case types.String:
		text = string(v)
	case types.Int, types.Uint, types.Double:
		text = fmt.Sprint(v.Value())
	default:
		return semver.Version{}, fmt.Errorf("%s is given a value of type %s, which is no version", versionFunction,
			v.Type().TypeName())
	}
	if len(text) > maxVersionBytes {
		return semver.Version{}, fmt.Errorf("%s is given a text of %d bytes, more than %d", versionFunction, len(text),
			maxVersionBytes)
	}
	return semver.ParseTolerant(text)
}

// pattern is a compiled regular expression.
type pattern struct {
	expression *regexp.Regexp
	size       int // parts, with repetitions written out: what one character of a text costs at most
}

// work is what it costs to match a text of so many bytes: each part may be looked at for each.
func (p *pattern) work(length int) int { return p.size * (1 + length) / patternUnit }

var errPatternLarge = fmt.Errorf("a regular expression has more than %d bytes or %d parts", maxPatternBytes,
	maxPatternSize)

// readPattern compiles a regular expression, which may be a property's value. A few bytes with repetitions can
// stand for megabytes, so that it is measured before.
func readPattern(text string) (*pattern, error) {
	if len(text) > maxPatternBytes {
		return nil, errPatternLarge
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	n := parts(tree)
	if n > maxPatternSize {
		return nil, errPatternLarge
	}
	expression, err := regexp.Compile(text)
	return &pattern{expression, n}, err
}

// parts counts what an expression is made of, with its repetitions written out.
func parts(r *syntax.Regexp) int {
	n := 1 + len(r.Rune)
	for _, sub := range r.Sub {
		n += parts(sub)
	}
	if r.Op == syntax.OpRepeat {
		n *= max(r.Min, r.Max, 1)
	}
	return n
}

// matches says whether a text has a part that fits a regular expression.
func matches(text, expression ref.Val) ref.Val {
	t, ok := text.(types.String)
	e, fine := expression.(types.String)
	if !ok || !fine {
		return types.WrapErr(errors.New("matches is given something that is no text"))
	}
	p, err := patterns.get(string(e), readPattern)
	if err != nil {
		return types.WrapErr(err)
	}
	if n := p.work(len(t)); n > MaxCost {
		return types.NewErr("to match a text of %d bytes costs %d, more than %d", len(t), n, MaxCost)
	}
	return types.Bool(p.expression.MatchString(string(t)))
}
