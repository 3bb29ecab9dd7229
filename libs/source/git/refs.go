package git

import (
	"regexp"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// MaxReferences bounds the references of a repository; the largest public ones have some 100,000.
const MaxReferences = 500_000

// references are those of a repository, by their full names.
type references struct {
	head   plumbing.Hash // zero where there is none
	hashes map[string]plumbing.Hash
	peeled map[string]plumbing.Hash // the commits that annotated tags name
}

var reCommit = regexp.MustCompile(`^[0-9a-f]{40}$`)

const (
	branches = "refs/heads/"
	tags     = "refs/tags/"
)

// find resolves a reference: "" is HEAD, 40 digits a commit, refs/… a full name, and else a branch or a tag.
func (r references) find(reference string) (pointer, error) {
	switch {
	case reference == "":
		if r.head.IsZero() {
			return pointer{}, errs.New(errs.NotFound, "it has no HEAD; name a branch or a tag in reference: %s",
				r.names())
		}
		return pointer{want: r.head, commit: r.head, advertised: true}, nil
	case reCommit.MatchString(reference):
		return r.commit(plumbing.NewHash(reference)), nil
	case strings.HasPrefix(reference, "refs/"):
		if _, ok := r.hashes[reference]; ok {
			return r.named(reference), nil
		}
	default:
		_, branch := r.hashes[branches+reference]
		_, tag := r.hashes[tags+reference]
		switch {
		case branch && tag && r.named(branches+reference).commit != r.named(tags+reference).commit:
			return pointer{}, errs.New(errs.Invalid, "reference %q is both a branch and a tag; write %s%s or %s%s",
				reference, branches, reference, tags, reference)
		case branch:
			return r.named(branches + reference), nil
		case tag:
			return r.named(tags + reference), nil
		}
	}
	return pointer{}, errs.New(errs.NotFound, "it has no branch or tag %q; it has %s", reference, r.names())
}

func (r references) named(name string) pointer {
	p := pointer{want: r.hashes[name], commit: r.hashes[name], advertised: true}
	if c, ok := r.peeled[name]; ok {
		p.commit = c
	}
	return p
}

// commit is asked for by itself; a server that refuses may give it as part of everything.
func (r references) commit(h plumbing.Hash) pointer {
	p := pointer{want: h, commit: h}
	for name, tip := range r.hashes {
		if tip == h {
			p.advertised = true
		}
		if strings.HasPrefix(name, branches) || strings.HasPrefix(name, tags) {
			p.all = append(p.all, tip)
		}
	}
	slices.SortFunc(p.all, func(a, b plumbing.Hash) int { return slices.Compare(a[:], b[:]) })
	p.all = slices.Compact(p.all)
	return p
}

// names lists what can be chosen.
func (r references) names() string {
	const most = 20
	var names []string
	for name := range r.hashes {
		for _, prefix := range []string{branches, tags} {
			if short, ok := strings.CutPrefix(name, prefix); ok {
				names = append(names, short)
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return "none"
	}
	if len(names) > most {
		names = append(names[:most], "…")
	}
	return strings.Join(names, ", ")
}
