package main

import (
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
		"ok    libs/errs", "FAIL  libs/pg", "no row", "libs/errs.TestB: errs_test.go:9: needs a database", "panic: test timed out",
		"slowest packages:\n        9s  libs/bus\n\n", "failed packages: libs/bus, libs/pg", "\n1 passed, 3 failed, 1 skipped in 12s\n",
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
