package source

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// MaxReference bounds an image reference: a host of 253, a repository of 255, a tag of 128, a digest.
const MaxReference = 800

// Reference is an image reference that names its registry. Chandler adds no registry by itself: which
// one a short name means differs between tools, and a catalog must mean the same everywhere.
type Reference struct {
	Host       string // with the port, where there is one
	Repository string
	Tag        string // "" where only a digest is given
	Digest     string // goes before Tag
}

var (
	reHost = regexp.MustCompile(
		`^(?:[a-zA-Z0-9](?:[-a-zA-Z0-9.]*[a-zA-Z0-9])?|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?$`)
	reRepository = regexp.MustCompile(
		`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$`)
	reTag = regexp.MustCompile(`^\w[\w.-]{0,127}$`)
)

// ParseReference reads host[:port]/repository[:tag][@digest].
func ParseReference(s string) (Reference, error) {
	bad := func(format string, args ...any) (Reference, error) {
		return Reference{}, errs.New(errs.Invalid,
			"image reference %q %s; write registry/repository:tag or registry/repository@sha256:…",
			shorten(s), fmt.Sprintf(format, args...)).At("", RuleReference)
	}
	if len(s) > MaxReference {
		return bad("has %d characters, more than %d", len(s), MaxReference)
	}
	host, rest, ok := strings.Cut(s, "/")
	if !ok || !looksLikeHost(host) {
		return bad("names no registry")
	}
	if !reHost.MatchString(host) {
		return bad("names a registry %q that is no host", shorten(host))
	}
	r := Reference{Host: host}
	rest, sum, hasDigest := strings.Cut(rest, "@")
	if hasDigest {
		if _, err := digest.Parse(sum); err != nil {
			return bad("has a digest that is not sha256: and 64 lower-case hexadecimal digits")
		}
		r.Digest = sum
	}
	repository, tag, hasTag := strings.Cut(rest, ":")
	if hasTag && !reTag.MatchString(tag) {
		return bad("has a tag %q that is none", shorten(tag))
	}
	r.Repository, r.Tag = repository, tag
	if !reRepository.MatchString(repository) || len(repository) > 255 {
		return bad("has a repository %q that is none: lower-case letters, digits and . _ - between slashes",
			shorten(repository))
	}
	if !hasTag && !hasDigest {
		return bad("has neither tag nor digest")
	}
	return r, nil
}

// looksLikeHost distinguishes a registry from the first part of a short name, as every tool does.
func looksLikeHost(s string) bool {
	return strings.ContainsAny(s, ".:[") || s == "localhost"
}

// Name is host and repository.
func (r Reference) Name() string { return r.Host + "/" + r.Repository }

// String is the whole reference.
func (r Reference) String() string {
	s := r.Name()
	if r.Tag != "" {
		s += ":" + r.Tag
	}
	if r.Digest != "" {
		s += "@" + r.Digest
	}
	return s
}

// shorten keeps what a hostile input adds to a message small.
func shorten(s string) string {
	const most = 120
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
