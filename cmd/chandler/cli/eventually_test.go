package cli

import (
	"regexp"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

const (
	// eventuallyWithin bounds the wait for what services do on their own.
	eventuallyWithin = 60 * time.Second
	// lookSoonest and lookLatest bound the time between two looks, each of which is a process; between them it is a
	// tenth of the time waited for.
	lookSoonest = 100 * time.Millisecond
	lookLatest  = time.Second
)

// eventually runs a command again and again until its output matches: eventually PATTERN COMMAND ARGS...
func eventually(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) < 2 {
		ts.Fatalf("usage: eventually pattern command args...")
	}
	want, err := regexp.Compile(args[0])
	ts.Check(err)
	began, end := time.Now(), time.After(eventuallyWithin)
	for {
		err := ts.Exec(args[1], args[2:]...)
		out := ts.ReadFile("stdout") + ts.ReadFile("stderr")
		if err == nil && want.MatchString(out) {
			return
		}
		select {
		case <-time.After(min(max(time.Since(began)/10, lookSoonest), lookLatest)):
		case <-end:
			ts.Fatalf("after %s the output does not match %q:\n%s", eventuallyWithin, args[0], out)
		}
	}
}
