package archtest

import (
	"path"
	"slices"
	"strings"
)

// fits reports whether a short path is one of a pattern: "*" stands for one element, a last "..."
// for any number of them, none included.
func fits(pattern, short string) bool {
	tree, isTree := strings.CutSuffix(pattern, "/...")
	if !isTree {
		ok, err := path.Match(pattern, short)
		return err == nil && ok
	}
	have := strings.Split(short, "/")
	want := strings.Split(tree, "/")
	if len(have) < len(want) {
		return false
	}
	ok, err := path.Match(tree, strings.Join(have[:len(want)], "/"))
	return err == nil && ok
}

func ruleOf(rules []Rule, short string) (Rule, bool) {
	for _, r := range rules {
		if slices.ContainsFunc(r.Packages, func(p string) bool { return fits(p, short) }) {
			return r, true
		}
	}
	return Rule{}, false
}

// allowed reports whether package p may import package d under the matchers.
func allowed(may []string, p, d Package) bool {
	return slices.ContainsFunc(may, func(m string) bool { return matches(m, p, d) })
}

func matches(m string, p, d Package) bool {
	switch m {
	case anything:
		return !d.Ours() || !isService(d) || sameService(p, d) || !isService(p)
	case anyStd:
		return d.Standard
	case pureStd:
		return d.Standard && !slices.Contains(impureStd(), d.ImportPath)
	case outside:
		return !d.Standard && !d.Ours()
	case ownPure:
		return sameService(p, d) && !strings.Contains(d.Short(), "/internal/") && !strings.HasSuffix(d.Short(), "/app")
	case ownTree:
		return below(p, d)
	}
	if first, _, _ := strings.Cut(m, "/"); strings.Contains(first, ".") {
		return d.ImportPath == m || strings.HasPrefix(d.ImportPath, m+"/")
	}
	if !d.Ours() || isService(d) && !sameService(p, d) {
		return false
	}
	return fits(m, d.Short())
}

func isService(p Package) bool { return strings.HasPrefix(p.Short(), "services/") }

// service is the first two elements of a path: services/resolver.
func service(p Package) string {
	parts := strings.SplitN(p.Short(), "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}

func sameService(p, d Package) bool {
	return isService(p) && d.Ours() && service(p) == service(d)
}

// below reports whether d belongs to the same adapter as p: services/x/internal/<adapter>/...
func below(p, d Package) bool {
	adapter := func(q Package) string {
		parts := strings.SplitN(q.Short(), "/", 5)
		return strings.Join(parts[:min(4, len(parts))], "/")
	}
	return sameService(p, d) && adapter(p) == adapter(d)
}
