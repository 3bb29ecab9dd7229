// Package removedapi knows which kinds of Kubernetes' own API no longer are served, and from which version of
// Kubernetes on (R-CSV-61). It is pure: a table and a comparison of versions.
//
// What a distribution keeps beyond that, or leaves out before, is not known here: what comes out is a warning.
package removedapi

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// Kind is a kind of an API version; of the core group Group is "".
type Kind struct{ Group, Version, Kind string }

// String is "kind.version.group", as kubectl takes it, the kind as it is spelled.
func (k Kind) String() string {
	if k.Group == "" {
		return k.Kind + "." + k.Version
	}
	return k.Kind + "." + k.Version + "." + k.Group
}

// Version is a version of Kubernetes without its patch.
type Version struct{ Major, Minor int }

// String is such as 1.38.
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Next is the version to which one upgrades: minors are not skipped.
func (v Version) Next() Version { return Version{v.Major, v.Minor + 1} }

func (v Version) compare(o Version) int {
	return cmp.Or(cmp.Compare(v.Major, o.Major), cmp.Compare(v.Minor, o.Minor))
}

// versionForm is what an API server says of itself: v1.37.2, v1.37.2-gke.100, v1.37.2+k3s1.
var versionForm = regexp.MustCompile(`^v?(\d{1,4})\.(\d{1,4})(\.|\+|-|$)`)

// ParseVersion reads what an API server says of itself.
func ParseVersion(text string) (v Version, ok bool) {
	m := versionForm.FindStringSubmatch(text)
	if m == nil {
		return Version{}, false
	}
	major, err1 := strconv.Atoi(m[1])
	minor, err2 := strconv.Atoi(m[2])
	return Version{major, minor}, err1 == nil && err2 == nil
}

// In is the first version of Kubernetes that does not serve a kind; ok is false where none is known.
func In(k Kind) (v Version, ok bool) {
	v, ok = removals[k]
	return v, ok
}

// Gone are those of the kinds that a cluster does not serve once it has been upgraded by one minor version, or already
// does not, each once and sorted. Of a cluster whose version cannot be read nothing is said.
func Gone(clusterVersion string, kinds []Kind) []Kind {
	now, ok := ParseVersion(clusterVersion)
	if !ok {
		return nil
	}
	var out []Kind
	for _, k := range kinds {
		if v, ok := In(k); ok && v.compare(now.Next()) <= 0 {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Version, b.Version))
	})
	return slices.Compact(out)
}

// Kinds are all kinds that are known to be removed, in no order.
func Kinds() []Kind {
	out := make([]Kind, 0, len(removals))
	for k := range removals {
		out = append(out, k)
	}
	return out
}
