// Package author has the commands for people who write and curate catalogs: chandler catalog validate,
// render, diff and the rest. None of them needs a server; all of them read whatever a catalog can come
// from: directories, archives, images, databases, running catalogs.
//
// What a command makes goes to standard output, or into the place that was named, whole or not at all;
// everything that is said goes to standard error. Exit statuses are for scripts: 0 is done and good, 1 is
// done and something is wrong with the catalog, 2 is not done (usage, or a source that cannot be read).
package author

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
)

// Env is what the commands take from their process.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	Lookup   func(name string) (string, bool) // of the environment
}

// The exit statuses beside 0.
const (
	exitFindings = 1
	exitFailed   = 2
	// ExitDiffers is the status of what was compared and differs.
	ExitDiffers = 3
)

// ExitError is an error with the status that the process ends with. Err is nil where all was said already.
type ExitError struct {
	Code int
	Err  error
}

// Error is the text of the error, "" where all was said.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns the error.
func (e *ExitError) Unwrap() error { return e.Err }

// tool is one run of one command.
type tool struct {
	Env

	sources *sources
}

func newTool(env Env) *tool { return &tool{Env: env, sources: &sources{Env: env}} }

// Commands returns the commands, for a parent command "catalog".
func Commands(env Env) []*cobra.Command {
	t := newTool(env)
	all := []*cobra.Command{
		t.validateCommand(), t.renderCommand(), t.diffCommand(), t.graphCommand(), t.lintCommand(),
		t.initCommand(), t.addEntryCommand(), t.promoteCommand(), t.templateCommand(), t.pruneCommand(),
		t.migrateCommand(), t.composeCommand(), t.dockerfileCommand(), t.mirrorListCommand(), t.serveCommand(),
	}
	for _, c := range all {
		Statuses(c)
	}
	return all
}

// ListCommands returns the commands for a parent command "catalog list": what a catalog at hand holds.
func ListCommands(env Env) []*cobra.Command {
	t := newTool(env)
	all := []*cobra.Command{t.listPackagesCommand(), t.listChannelsCommand(), t.listBundlesCommand()}
	for _, c := range all {
		Statuses(c)
	}
	return all
}

// Statuses gives every error of a command, and of those below it, a status: 2 where it has none. Commands of other
// packages that need no server use it, too.
func Statuses(c *cobra.Command) {
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return failed(fmt.Errorf("%w; see %s --help", err, c.CommandPath()))
	})
	if args := c.Args; args != nil {
		c.Args = func(c *cobra.Command, list []string) error {
			if err := args(c, list); err != nil {
				return failed(fmt.Errorf("%w; usage: %s", err, c.UseLine()))
			}
			return nil
		}
	}
	if run := c.RunE; run != nil {
		c.RunE = func(c *cobra.Command, list []string) error { return failed(run(c, list)) }
	}
	for _, below := range c.Commands() {
		Statuses(below)
	}
}

func failed(err error) error {
	if err == nil {
		return nil
	}
	if _, has := errors.AsType[*ExitError](err); has {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, load.ErrStopped) {
		err = errors.New("interrupted; nothing was left half-written")
	}
	return &ExitError{exitFailed, err}
}

// printNote says a line to the person, beside the result.
func (t *tool) printNote(format string, args ...any) {
	fmt.Fprintln(t.Err, plain.Text(fmt.Sprintf(format, args...)))
}

// maxShown is how many findings are shown beside a result; chandler catalog validate shows all.
const maxShown = 20

// reportFindings shows findings beside a result. It returns an error of status 1 where one of them is an error.
func (t *tool) reportFindings(findings catalog.Findings) error {
	reported := 0
	var shown catalog.Findings
	for _, f := range findings {
		if f.Severity == catalog.SeverityInfo {
			continue
		}
		reported++
		if reported <= maxShown {
			t.printNote("%s", f)
			shown = append(shown, f)
		}
	}
	if reported > maxShown {
		t.printNote("and %s; chandler catalog validate shows all", count(reported-maxShown, "more finding"))
	}
	if hint := ruleHint(shown); hint != "" {
		t.printNote("%s", hint)
	}
	if n := findings.Errors(); n > 0 {
		return &ExitError{exitFindings, fmt.Errorf("%s in the catalog", count(n, "error"))}
	}
	return nil
}

// count is "1 package" or "3 packages".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// temporary makes a directory that ends with the command.
func temporary() (dir string, remove func() error, err error) {
	dir, err = os.MkdirTemp("", "chandler-catalog-")
	return dir, func() error { return os.RemoveAll(dir) }, err
}
