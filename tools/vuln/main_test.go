package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// The database of testdata has one entry: net/url.Parse is vulnerable in every version of Go.
func TestCheck(t *testing.T) {
	t.Parallel()
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://127.0.0.1:1" // nothing listens there
	for name, c := range map[string]struct {
		named, program string
		status         int
		says           string
	}{
		"a vulnerable function is called":  {"file://" + dir + "/db", "calls", exitFound, "GO-2026-9999"},
		"none is called":                   {"file://" + dir + "/db", "clean", 0, "No vulnerabilities found"},
		"a database without our modules":   {"file://" + dir + "/other", "calls", 0, "No vulnerabilities found"},
		"no database":                      {"", "calls", 0, "not checked: no vulnerability database (set GOVULNDB)"},
		"a named database that is away":    {nobody, "clean", exitFailed, "creating client"},
		"a named database that is missing": {"file://" + dir + "/none", "clean", exitFailed, "none"},
	} {
		var out bytes.Buffer
		status := check(t.Context(), &out, c.named, nobody, []string{filepath.Join(dir, "program", c.program)})
		if status != c.status || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: status %d, want %d; it says %s", name, status, c.status, out.String())
		}
	}
}
