package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// maxLine bounds one line of go test -json; a test that prints more in one line is broken anyway.
const maxLine = 64 << 20

// event is one line of go test -json (go doc test2json).
type event struct {
	Action     string
	Package    string
	ImportPath string // of build output
	Test       string
	Output     string
	Elapsed    float64 // seconds
}

type took struct {
	name string
	time time.Duration
}

type report struct {
	out      io.Writer
	lines    map[string][]string // output of running tests, by package and test
	packages []took
	tests    []took
	skips    []string
	passed   int
	failed   int
	skipped  int
	broken   []string // packages that failed
}

func newReport(out io.Writer) *report { return &report{out: out, lines: map[string][]string{}} }

func (r *report) read(in io.Reader) error {
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 0, 1<<16), maxLine)
	for s.Scan() {
		var e event
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			r.print(s.Text() + "\n") // go itself speaks plainly when it cannot even list packages
			continue
		}
		r.take(e)
	}
	return s.Err()
}

func (r *report) take(e event) {
	key := e.Package + "\x00" + e.Test
	switch e.Action {
	case "output", "build-output":
		if e.Action == "build-output" {
			r.print(e.Output)
			return
		}
		r.lines[key] = append(r.lines[key], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.endPackage(e)
		} else {
			r.endTest(e)
		}
		delete(r.lines, key)
	}
}

func (r *report) endTest(e event) {
	key := e.Package + "\x00" + e.Test
	if parent, _, sub := cutLast(e.Test, "/"); sub && e.Action == "fail" {
		// The parent fails after its part; it prints both.
		pkey := e.Package + "\x00" + parent
		r.lines[pkey] = append(r.lines[pkey], r.lines[key]...)
	}
	switch e.Action {
	case "pass":
		r.passed++
	case "fail":
		r.failed++
		if !strings.Contains(e.Test, "/") {
			r.print(strings.Join(r.lines[key], ""))
		}
	case "skip":
		r.skipped++
		r.skips = append(r.skips, short(e.Package)+"."+e.Test+": "+reason(r.lines[key]))
	}
	if !strings.Contains(e.Test, "/") {
		r.tests = append(r.tests, took{short(e.Package) + "." + e.Test, seconds(e.Elapsed)})
	}
}

func (r *report) endPackage(e event) {
	d := seconds(e.Elapsed)
	switch e.Action {
	case "pass":
		r.print(fmt.Sprintf("ok    %-60s %8s\n", short(e.Package), d.Round(time.Millisecond)))
	case "fail":
		r.broken = append(r.broken, short(e.Package))
		r.printOrphans(e.Package)
		r.print(fmt.Sprintf("FAIL  %-60s %8s\n", short(e.Package), d.Round(time.Millisecond)))
	}
	r.packages = append(r.packages, took{short(e.Package), d})
}

// printOrphans prints what tests said that never ended: a panic or a timeout took the process.
func (r *report) printOrphans(pkg string) {
	var keys []string
	for key := range r.lines {
		if strings.HasPrefix(key, pkg+"\x00") {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		r.print(strings.Join(r.lines[key], ""))
		if !strings.HasSuffix(key, "\x00") {
			r.failed++
		}
		delete(r.lines, key)
	}
}

// add takes in the report of a run that has ended.
func (r *report) add(o *report) {
	r.packages, r.tests = append(r.packages, o.packages...), append(r.tests, o.tests...)
	r.skips, r.broken = append(r.skips, o.skips...), append(r.broken, o.broken...)
	r.passed, r.failed, r.skipped = r.passed+o.passed, r.failed+o.failed, r.skipped+o.skipped
}

func (r *report) close(slowest int, all time.Duration) {
	if len(r.skips) > 0 {
		r.print("\nskipped:\n")
		slices.Sort(r.skips)
		for _, s := range r.skips {
			r.print("  " + s + "\n")
		}
	}
	r.printSlowest("slowest packages", r.packages, slowest)
	r.printSlowest("slowest tests", r.tests, slowest)
	if len(r.broken) > 0 {
		slices.Sort(r.broken)
		r.print("\nfailed packages: " + strings.Join(r.broken, ", ") + "\n")
		r.failed = max(r.failed, len(r.broken)) // a package that does not build has no test that failed
	}
	r.print(fmt.Sprintf("\n%d passed, %d failed, %d skipped in %s\n", r.passed, r.failed, r.skipped,
		all.Round(time.Second)))
}

func (r *report) printSlowest(title string, list []took, n int) {
	slices.SortFunc(list, func(a, b took) int {
		if a.time != b.time {
			return int(b.time - a.time)
		}
		return strings.Compare(a.name, b.name)
	})
	r.print("\n" + title + ":\n")
	for _, t := range list[:min(n, len(list))] {
		r.print(fmt.Sprintf("  %8s  %s\n", t.time.Round(10*time.Millisecond), t.name))
	}
}

// print ignores a terminal that is gone: the exit status still tells.
func (r *report) print(s string) { _, _ = io.WriteString(r.out, s) }

func seconds(f float64) time.Duration { return time.Duration(f * float64(time.Second)) }

// short leaves out what all packages of this repository share.
func short(pkg string) string { return strings.TrimPrefix(pkg, "github.com/chandler-fleet/chandler/") }

// reason is what a skipped test said, without go test's own frame around it.
func reason(lines []string) string {
	var said []string
	for _, l := range lines {
		l = strings.TrimSpace(l)
		if l != "" && !strings.HasPrefix(l, "=== ") && !strings.HasPrefix(l, "--- ") {
			said = append(said, l)
		}
	}
	return strings.Join(said, " ")
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
