// Package vouch is what all who vouch for identities have in common, providers of OpenID Connect and authorities of
// client certificates: names that can be told apart, and bounds of what they say of somebody.
package vouch

import (
	"slices"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/renewed"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

const (
	// MaxSubject bounds the id of an identity, as OpenID Connect does.
	MaxSubject = 255
	// maxName bounds what an identity is shown as.
	maxName = 100
	// MaxGroups and maxGroupChars bound the groups of an identity: rights are looked up by each.
	MaxGroups, maxGroupChars = 500, 253
)

// ReadFile reads the YAML file of a setting, in which nothing is unknown. What is wrong names the setting.
func ReadFile(setting, path string, into any) error {
	raw, err := renewed.Read(path)
	if err != nil {
		return errs.Wrap(errs.Invalid, err, "setting %s", setting)
	}
	return errs.Wrap(errs.Invalid, yaml.UnmarshalStrict(raw, into), "setting %s: %s", setting, path)
}

// Source is one who vouches, as the settings name it.
type Source struct {
	At     string // its place in the settings
	Name   string
	Tenant string // of everybody whom it vouches for
	Prefix string // of groups
}

// Check refuses sources that could be taken for each other: identities are listed by the name of theirs, and bindings
// name groups by the prefix.
func Check(v *rule.Violations, list []Source) {
	for i, s := range list {
		for _, other := range list[:i] {
			if other.Name == s.Name {
				v.Addf(s.At+".name", rule.Unique, "%s: the name %q is that of another one", s.At, s.Name)
			}
			if s.Tenant == other.Tenant && (strings.HasPrefix(s.Prefix, other.Prefix) ||
				strings.HasPrefix(other.Prefix, s.Prefix)) {
				v.Addf(s.At+".groupsPrefix", rule.Unique, "%s: the groups of %q and %q could be taken for each other: give "+
					"each a prefix with which that of no other begins", s.At, s.Name, other.Name)
			}
		}
	}
}

// Groups are those that a binding can name, with a prefix, each once.
func Groups(prefix string, all []string) (list []string) {
	for _, g := range all {
		if g != "" && len(prefix)+len(g) <= maxGroupChars && printable(g) == g {
			list = append(list, prefix+g)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// printable is a text without what could not be shown.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)
}

// Shown is a name as people see it.
func Shown(name string) string {
	runes := []rune(printable(name))
	return string(runes[:min(len(runes), maxName)])
}
