package main

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

const stream = `{"Action":"start","Package":"github.com/chandler-fleet/chandler/libs/errs"}
{"Action":"output","Package":"github.com/chandler-fleet/chandler/libs/errs","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"pass","Package":"github.com/chandler-fleet/chandler/libs/errs","Test":"TestA","Elapsed":0.5}
{"Action":"output","Package":"github.com/chandler-fleet/chandler/libs/errs","Test":"TestB","Output":"    errs_test.go:9: needs a database\n"}
{"Action":"skip","Package":"github.com/chandler-fleet/chandler/libs/errs","Test":"TestB","Elapsed":0}
{"Action":"pass","Package":"github.com/chandler-fleet/chandler/libs/errs","Elapsed":0.7}
{"Action":"output","Package":"github.com/chandler-fleet/chandler/libs/pg","Test":"TestC/sub","Output":"    pg_test.go:3: no row\n"}
{"Action":"fail","Package":"github.com/chandler-fleet/chandler/libs/pg","Test":"TestC/sub","Elapsed":0.1}
{"Action":"fail","Package":"github.com/chandler-fleet/chandler/libs/pg","Test":"TestC","Elapsed":2}
{"Action":"fail","Package":"github.com/chandler-fleet/chandler/libs/pg","Elapsed":2.5}
{"Action":"output","Package":"github.com/chandler-fleet/chandler/libs/bus","Test":"TestHang","Output":"panic: test timed out\n"}
{"Action":"fail","Package":"github.com/chandler-fleet/chandler/libs/bus","Elapsed":9}
`

func TestReport(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	r := newReport(&out)
	if err := r.read(strings.NewReader(stream)); err != nil {
		t.Fatal(err)
	}
	r.close(1, 12*time.Second)
	for _, want := range []string{
		"ok    libs/errs", "FAIL  libs/pg", "no row", "libs/errs.TestB: errs_test.go:9: needs a database",
		"panic: test timed out", "slowest packages:\n        9s  libs/bus\n\n", "failed packages: libs/bus, libs/pg",
		"\n1 passed, 3 failed, 1 skipped in 12s\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, out.String())
		}
	}
}

func TestRunFailsWithoutATest(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if status := run(t.Context(), &out, time.Minute, 1, []string{"-run=^$", "./..."}); status == 0 {
		t.Errorf("status 0 without a test:\n%s", out.String())
	}
}

// TestRunsAreToldAsOne: two runs of which one fails; both are heard out, and the report is of both.
func TestRunsAreToldAsOne(t *testing.T) {
	t.Setenv("TESTRUN_INSIDE", "1")
	var out strings.Builder
	status := run(t.Context(), &out, time.Minute, 1, []string{"-run=^TestInside$/^good$", ".", "--",
		"-run=^TestInside$", "."})
	if status == 0 || !strings.Contains(out.String(), "\n3 passed, 2 failed, 0 skipped in ") ||
		!strings.Contains(out.String(), "the reason") {
		t.Errorf("status %d:\n%s", status, out.String())
	}
}

// TestInside is what TestRunsAreToldAsOne runs.
func TestInside(t *testing.T) {
	t.Parallel()
	if os.Getenv("TESTRUN_INSIDE") == "" {
		t.Skip("it fails by intent, for TestRunsAreToldAsOne")
	}
	t.Run("good", func(*testing.T) {})
	t.Run("bad", func(t *testing.T) { t.Error("the reason") })
}

// TestNextRunBegins: what comes after a run that failed runs all the same, and the failure stays.
func TestNextRunBegins(t *testing.T) {
	t.Setenv("TESTRUN_INSIDE", "1")
	var out strings.Builder
	status := run(t.Context(), &out, time.Minute, 1, []string{
		"-run=^TestInside$", ".", "--then", "-run=^TestInside$/^good$", ".",
	})
	if status == 0 || !strings.Contains(out.String(), "\n3 passed, 2 failed, 0 skipped in ") {
		t.Errorf("status %d:\n%s", status, out.String())
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	got := split([]string{"-race", "./a", "--", "./b", "--then", "-run=X", "./c", "--", "./d"})
	want := []chain{{{"-race", "./a"}}, {{"./b"}, {"-run=X", "./c"}}, {{"./d"}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}
