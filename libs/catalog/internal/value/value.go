// Package value holds the forms that values of a catalog must have: names, pull specifications, ranges,
// releases, and the values of the property types that Chandler knows (BEHAVIOUR §1.4, §3.4). Every check
// returns what is wrong in words that say how to fix it, and nothing where nothing is.
package value

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blang/semver/v4"
)

const (
	maxName      = 253 // of a DNS-1123 subdomain
	maxReference = 255 // of a repository with its host, as registries have it
	maxRelease   = 20  // R-CAT-27
	// maxRange is the length of a range; real ones have some 30 bytes, and each is asked often.
	maxRange = 4096
)

var (
	dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	dnsName  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	kindName = regexp.MustCompile(`^[A-Za-z]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?$`)
	// reference is a pull specification: [host[:port]/]path[:tag][@digest] (R-CAT-28).
	reference = regexp.MustCompile(`^(` +
		`([a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*(:[0-9]+)?/)?` +
		`[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*` +
		`)(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$`)
	digests = map[string]*regexp.Regexp{
		"sha256": regexp.MustCompile(`^[0-9a-f]{64}$`),
		"sha384": regexp.MustCompile(`^[0-9a-f]{96}$`),
		"sha512": regexp.MustCompile(`^[0-9a-f]{128}$`),
	}
)

// Name returns why s is no name: longer than that many bytes, or with a character that cannot be seen, which
// is a slip or a trick, and of which databases refuse some.
func Name(s string, most int) string {
	if len(s) > most {
		return fmt.Sprintf("has %d bytes, more than %d; shorten it", len(s), most)
	}
	if i := strings.IndexFunc(s, unicode.IsControl); i >= 0 {
		r, _ := utf8.DecodeRuneInString(s[i:])
		return fmt.Sprintf("holds the control character %U; remove it", r)
	}
	return ""
}

// Label reports whether s is a DNS-1123 label.
func Label(s string) bool { return dnsLabel.MatchString(s) }

// Subdomain reports whether s is a DNS-1123 subdomain.
func Subdomain(s string) bool { return len(s) <= maxName && dnsName.MatchString(s) }

// Reference returns why s is no pull specification (R-CAT-28).
func Reference(s string) string {
	if plainReference(s) {
		return ""
	}
	m := reference.FindStringSubmatch(s)
	if m == nil {
		return "is no pull specification such as registry.example.com/team/name:tag or …@sha256:<64 hex digits>"
	}
	if len(m[1]) > maxReference {
		return fmt.Sprintf("is no pull specification: its repository has more than %d characters", maxReference)
	}
	_, pin, pinned := strings.Cut(s, "@")
	algorithm, hex, _ := strings.Cut(pin, ":")
	if form := digests[algorithm]; pinned && form != nil && !form.MatchString(hex) {
		return "is no pull specification: its digest is cut or not in lower case; copy the whole " + algorithm +
			" digest"
	}
	return ""
}

// GVK returns why an API breaks the naming rules of Kubernetes (R-CAT-17).
func GVK(group, version, kind string) string {
	switch {
	case group != "" && !Subdomain(group):
		return fmt.Sprintf("group %q is not a DNS name", group)
	case !dnsLabel.MatchString(version):
		return fmt.Sprintf("version %q is not a DNS label", version)
	case !kindName.MatchString(kind):
		return fmt.Sprintf("kind %q is not a kind", kind)
	}
	return ""
}

// Range parses a range of versions: ">=1.0.0 <2.0.0 !1.2.1", "||" between alternatives (R-CAT-17).
func Range(s string) (semver.Range, error) {
	if len(s) > maxRange {
		return nil, fmt.Errorf("a range of %d bytes is longer than %d; write bounds instead of single versions", len(s),
			maxRange)
	}
	r, err := semver.ParseRange(s)
	if err != nil {
		return nil, fmt.Errorf("%q is not a range of versions such as \">=1.0.0 <2.0.0\": %w", s, err)
	}
	return r, nil
}

// Release returns why a release breaks R-CAT-27.
func Release(r string) string {
	if len(r) > maxRelease {
		return fmt.Sprintf("has more than %d characters", maxRelease)
	}
	for id := range strings.SplitSeq(r, ".") {
		if _, err := semver.NewPRVersion(id); err != nil {
			return "is not dot-separated pre-release identifiers: " + err.Error()
		}
	}
	return ""
}
