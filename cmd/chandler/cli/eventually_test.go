package cli

import (
	"regexp"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

const (
	// eventuallyEvery and eventuallyWithin bound the wait for what services do on their own.
	eventuallyEvery  = 100 * time.Millisecond
	eventuallyWithin = 60 * time.Second
)

// eventually runs a command again and again until its output matches: eventually PATTERN COMMAND ARGS...
func eventually(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) < 2 {
		ts.Fatalf("usage: eventually pattern command args...")
	}
	want, err := regexp.Compile(args[0])
	ts.Check(err)
	tick := time.NewTicker(eventuallyEvery)
	defer tick.Stop()
	end := time.After(eventuallyWithin)
	for {
		err := ts.Exec(args[1], args[2:]...)
		out := ts.ReadFile("stdout") + ts.ReadFile("stderr")
		if err == nil && want.MatchString(out) {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			ts.Fatalf("after %s the output does not match %q:\n%s", eventuallyWithin, args[0], out)
		}
	}
}
