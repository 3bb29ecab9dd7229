package catalog

import (
	"bufio"
	"bytes"
	"io/fs"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// ignoreFile is the name of a file of gitignore patterns. It holds for its directory and below, and
// is never catalog content itself (R-CAT-2).
const ignoreFile = ".indexignore"

// ignores are the patterns that hold in one directory: those of its parents first, so that the
// nearest file has the last word, as git has it.
type ignores []gitignore.Pattern

// with adds the patterns of dir's own ignore file, if it has one.
func (ig ignores) with(fsys fs.FS, dir string) (ignores, error) {
	data, err := readFile(fsys, path.Join(dir, ignoreFile), MaxIgnoreBytes)
	if err != nil {
		return ig, err
	}
	out := append(ignores(nil), ig...)
	domain := split(dir)
	s := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))))
	s.Buffer(nil, MaxIgnoreBytes+1)
	for s.Scan() {
		line := s.Text()
		if line == "" || strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		out = append(out, gitignore.ParsePattern(line, domain))
	}
	return out, s.Err()
}

// excluded reports whether the last pattern that speaks of a file excludes it. Files are asked for,
// never directories: a later "!*.yaml" takes a file back out of a directory that "**/*" excluded, as
// existing catalogs expect (a pattern such as "src/" still excludes all that lies below).
func (ig ignores) excluded(name string) bool {
	return gitignore.NewMatcher(ig).Match(split(name), false)
}

func split(dir string) []string {
	if dir == "." || dir == "" {
		return nil
	}
	return strings.Split(dir, "/")
}
