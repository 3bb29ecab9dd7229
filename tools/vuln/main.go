// Command vuln looks for known vulnerabilities that programs can reach, with govulncheck. Its arguments are the folders
// of the programs: govulncheck wants to be inside a module, and the root of a workspace is in none.
//
// The variable GOVULNDB names the database, as https:// or file:// URL; without it that of the Go project is taken if it
// answers. Where there is none, vuln says so in one line and succeeds: a machine that is cut off can still run the other
// checks. A finding is exit status 3, and a database of GOVULNDB that cannot be read 1.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"golang.org/x/vuln/scan"
)

const (
	goDatabase = "https://vuln.go.dev"
	// reachIn bounds the question whether the database of the Go project answers.
	reachIn = 2 * time.Second
	// exitFound is what govulncheck itself ends with when it has found something.
	exitFailed, exitFound = 1, 3
)

func main() {
	named := os.Getenv("GOVULNDB")
	os.Exit(check(context.Background(), os.Stdout, named, goDatabase, os.Args[1:]))
}

// check writes what it finds in the programs of these folders to out and returns the exit status. named is a database that must be there, "" for none;
// usual is taken then, if it answers.
func check(ctx context.Context, out io.Writer, named, usual string, folders []string) int {
	database := named
	if database == "" {
		if !answers(ctx, usual) {
			// Nothing can be done about an output that cannot be written, here and below.
			_, _ = fmt.Fprintln(out, "vulnerabilities: not checked: no vulnerability database (set GOVULNDB)")
			return 0
		}
		database = usual
	}
	status := 0
	for _, folder := range folders {
		status = max(status, look(ctx, out, database, folder))
	}
	return status
}

// look looks at one program. The status is larger for a finding than for a failure. Whether the program calls what is
// vulnerable takes up to a minute to find out, so that is asked only where a module that it needs is in the database.
func look(ctx context.Context, out io.Writer, database, folder string) int {
	var said bytes.Buffer
	status := govulncheck(ctx, &said, "-db", database, "-C", folder, "-scan", "module")
	if status == exitFound {
		said.Reset()
		status = govulncheck(ctx, &said, "-db", database, "-C", folder, ".")
	}
	_, _ = fmt.Fprintf(out, "vulnerabilities: %s: %s", folder, said.String())
	return status
}

// govulncheck runs it and returns its exit status.
func govulncheck(ctx context.Context, out io.Writer, arguments ...string) int {
	cmd := scan.Command(ctx, arguments...)
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Start()
	if err == nil {
		err = cmd.Wait()
	}
	switch e := err.(type) { //nolint:errorlint // as govulncheck does: the status is the error's own
	case nil:
		return 0
	case interface{ ExitCode() int }:
		return e.ExitCode()
	default:
		_, _ = fmt.Fprintln(out, err)
		return exitFailed
	}
}

// answers reports whether a database is there.
func answers(ctx context.Context, database string) bool {
	ctx, cancel := context.WithTimeout(ctx, reachIn)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, database+"/index/db.json", http.NoBody)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	return res.Body.Close() == nil && res.StatusCode == http.StatusOK
}
