package source

import (
	"cmp"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Candidates returns the references under which an image is asked for, in this order:
//
//  1. for each list in turn (a catalog's own mirrors before those of the indexer's configuration), the
//     mirrors of the longest prefix first, each in the order in which it is written;
//  2. the reference itself, unless a mapping that fits says that its source is never contacted.
//
// A prefix fits where the reference ends after it, or goes on with "/", ":" or "@" (after a bare host with "/" alone).
// The rest of the reference is kept, digest included, so that what a mirror answers is checked against the same digest.
func Candidates(reference string, lists ...[]Mirror) ([]string, error) {
	var out []string
	var never *Mirror
	for _, list := range lists {
		for _, m := range fitting(reference, list) {
			rest := strings.TrimPrefix(reference, m.Source)
			for _, to := range m.Mirrors {
				out = append(out, to+rest)
			}
			if m.Never && never == nil {
				never = &m
			}
		}
	}
	if never == nil {
		out = append(out, reference)
	}
	out = distinct(out)
	if len(out) == 0 {
		return nil, errs.New(errs.Invalid,
			"image %s has no mirror, and the mapping of %s says that its source is never contacted", reference,
			never.Source)
	}
	return out, nil
}

// fitting returns the mappings for a reference, the longest prefix first.
func fitting(reference string, list []Mirror) []Mirror {
	var out []Mirror
	for _, m := range list {
		if fits(reference, m.Source) {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b Mirror) int { return cmp.Compare(len(b.Source), len(a.Source)) })
	return out
}

// fits reports whether a prefix ends at a boundary of the reference. After a bare host only "/" is one:
// what follows ":" is a port there, and another registry.
func fits(reference, prefix string) bool {
	rest, ok := strings.CutPrefix(reference, prefix)
	switch {
	case !ok || prefix == "":
		return false
	case rest == "" || rest[0] == '/':
		return true
	default:
		return strings.Contains(prefix, "/") && (rest[0] == ':' || rest[0] == '@')
	}
}

// distinct keeps the first of equal references.
func distinct(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
