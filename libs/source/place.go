package source

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// path checks a path of the indexer's file system. Where it may lie is the indexer's to say.
func (c *checker) path(field, value string) {
	switch {
	case len(value) > MaxPath:
		c.addf(field, RuleMaxLength, "%s has %d bytes, %d are allowed", field, len(value), MaxPath)
	case strings.ContainsRune(value, 0):
		c.addf(field, RulePath, "%s holds a null character", field)
	case slices.Contains(strings.Split(value, "/"), ".."):
		c.addf(field, RulePath,
			"%s is %q: want a path without '..'; a relative one starts in the directory that the indexer keeps "+
				"catalogs in", field, shorten(value))
	}
}

// subdirectory checks a path inside an archive, a repository or an image.
func (c *checker) subdirectory(value string) {
	if value == "" {
		return
	}
	clean := path.Clean("/" + value)
	if len(value) > MaxPath || strings.ContainsAny(value, "\x00\\") || clean != "/"+strings.Trim(value, "/") {
		c.addf("/subdirectory", RulePath, "subdirectory %q: want names separated by '/', without '.' and '..'",
			shorten(value))
	}
}

// reSCP is the short form user@host:path of SSH.
var reSCP = regexp.MustCompile(`^(?:[^@/:]+@)?[^/:@]+:[^@]+$`)

// schemes says which URL schemes a type takes.
func schemes(t Type) []string {
	if t == Git {
		return []string{"https", "http", "ssh", "file"}
	}
	return []string{"https", "http"}
}

func (c *checker) url(t Type, s Settings) {
	if s.URL == "" {
		return
	}
	if len(s.URL) > MaxPath {
		c.addf("/url", RuleMaxLength, "/url has %d bytes, %d are allowed", len(s.URL), MaxPath)
		return
	}
	if t == Git && !strings.Contains(s.URL, "://") && reSCP.MatchString(s.URL) {
		return
	}
	if !strings.Contains(s.URL, "://") && strings.Contains(s.URL, "@") {
		c.addf("/url", RuleNoCredentials,
			"URL %q has more before its '@' than a user, or a second '@'; store a credential as a secret and name it "+
				"in secrets", ShortURL(s.URL))
		return
	}
	u, err := url.Parse(s.URL)
	switch {
	case err != nil || u.Scheme != "file" && u.Host == "" || !slices.Contains(schemes(t), u.Scheme):
		c.addf("/url", RuleURL, "URL %q: want %s://host/path", ShortURL(s.URL), strings.Join(schemes(t), ":// or "))
	case u.User != nil && (u.Scheme != "ssh" || hasPassword(u)):
		c.addf("/url", RuleNoCredentials, "URL %q holds a credential; store it as a secret and name it in secrets",
			ShortURL(s.URL))
	case u.Scheme == "http" && !s.Insecure:
		c.addf("/url", RuleURL, "URL %q is without TLS; use https, or set insecure", ShortURL(s.URL))
	case u.Fragment != "":
		c.addf("/url", RuleURL, "URL %q has a fragment, which means nothing here", ShortURL(s.URL))
	}
}

func hasPassword(u *url.URL) bool {
	_, has := u.User.Password()
	return has
}

// ShortURL is what may be said of a URL: neither what is before an "@", which may be a credential, nor
// the query, which may be a signature. It must not trust a URL to be a proper one: in a password that was
// not escaped, every character may stand.
func ShortURL(s string) string {
	scheme, rest, ok := strings.Cut(s, "://")
	if ok && !strings.ContainsAny(scheme, "@:") {
		scheme += "://"
	} else {
		scheme, rest = "", s
	}
	plain := rest
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		plain = rest[:i]
		if strings.Contains(rest[i:], "@") { // the end of a password, or a part of a query
			return shorten(scheme + "…")
		}
	}
	i := strings.LastIndexByte(plain, '@')
	if i >= 0 && strings.Contains(plain[:i], "/") { // perhaps of the path: what is left must not look like a host
		scheme += "…@"
	}
	return shorten(scheme + plain[i+1:])
}

// reGitReference leaves out what git itself refuses in the name of a reference, and what an option begins with.
var reGitReference = regexp.MustCompile(`^[^-/.\x00-\x20~^:?*\[\\\x7f][^\x00-\x20~^:?*\[\\\x7f]*$`)

func (c *checker) reference(t Type, s Settings) {
	bad := strings.Contains(s.Reference, "..") || strings.Contains(s.Reference, "@{") ||
		strings.Contains(s.Reference, "//") ||
		strings.HasSuffix(s.Reference, ".lock") || strings.HasSuffix(s.Reference, "/") || len(s.Reference) > 255
	switch {
	case s.Reference == "":
	case t == Git && (bad || !reGitReference.MatchString(s.Reference)):
		c.addf("/reference", RuleGitReference,
			"reference %q: want the name of a branch or a tag, refs/heads/… or refs/tags/…, or a commit",
			shorten(s.Reference))
	case t == Image && s.Path == "":
		c.addf("/reference", RuleNotForType,
			"reference chooses an image of an OCI layout on disk; in a registry, image says it all")
	}
}

func (c *checker) image(s Settings) {
	if s.Image != "" {
		if _, err := ParseReference(s.Image); err != nil {
			c.addf("/image", RuleReference, "%s", err)
		}
	}
	if s.Template == "" {
		return
	}
	if _, err := Variables(s.Template); err != nil {
		c.addf("/template", RuleTemplate, "%s", err)
	} else if _, err := ResolveTemplate(s.Template, "1.34.0"); err != nil {
		c.addf("/template", RuleReference, "%s", err)
	}
}

func (c *checker) address(address string) {
	if address == "" {
		c.required("/address", address)
		return
	}
	i := strings.LastIndexByte(address, ':')
	if i >= 0 {
		if port, err := strconv.Atoi(address[i+1:]); err == nil && port > 0 && port < 1<<16 &&
			len(address) <= MaxPath && reHost.MatchString(address) {
			return
		}
	}
	c.addf("/address", RuleAddress, "address %q: want host:port", shorten(address))
}

// reMirror takes the beginning of a reference: a host, perhaps a path, perhaps a tag or a digest.
var reMirror = regexp.MustCompile(`^[^/@]+(?:/[a-z0-9._/-]*[a-z0-9])?(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?$`)

func (c *checker) mirrors(list []Mirror) {
	if len(list) > MaxMirrors {
		c.addf("/mirrors", RuleMaxItems, "/mirrors has %d entries, %d are allowed", len(list), MaxMirrors)
		return
	}
	for i, m := range list {
		at := fmt.Sprintf("/mirrors/%d", i)
		c.prefix(at+"/source", m.Source)
		switch {
		case len(m.Mirrors) == 0:
			c.addf(at+"/mirrors", RuleRequired, "the mapping of %s names no mirror", shorten(m.Source))
		case len(m.Mirrors) > MaxMirrors:
			c.addf(at+"/mirrors", RuleMaxItems, "%s/mirrors has %d entries, %d are allowed", at, len(m.Mirrors),
				MaxMirrors)
		default:
			for j, to := range m.Mirrors {
				c.prefix(fmt.Sprintf("%s/mirrors/%d", at, j), to)
			}
		}
	}
}

// prefix checks one side of a mapping.
func (c *checker) prefix(field, value string) {
	host, _, _ := strings.Cut(value, "/")
	host, _, _ = strings.Cut(host, "@")
	if len(value) > MaxReference || !looksLikeHost(host) || !reHost.MatchString(host) || !reMirror.MatchString(value) {
		c.addf(field, RuleMirror,
			"%q: want the beginning of an image reference, such as registry.dock.test/ops, without '/' at its end",
			shorten(value))
	}
}
