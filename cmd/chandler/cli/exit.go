package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chandler-fleet/chandler/cmd/chandler/author"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/libs/spelling"
)

// exitCodes is the table of chandler help exit-codes and docs/cli.md.
var exitCodes = []struct {
	code int
	name string
	what string
}{
	{0, "done", "the command succeeded, or there was nothing to do"},
	{
		command.ExitFailed, "failed",
		"another error: a file that cannot be read, a fault of Chandler, several errors of different kinds. Commands " +
			"that check local input (catalog validate and lint, resolve): the answer is no",
	},
	{
		command.ExitUsage, "usage",
		"the command line is wrong, and nothing was tried: unknown commands, kinds and flags, missing arguments. " +
			"Tools for local catalogs: the input cannot be read",
	},
	{
		command.ExitDiffers, "differs",
		"what was compared differs: diff, catalog diff --exit-code, shadow --fail-on-difference, conformance",
	},
	{
		command.ExitRefused, "refused",
		"the change is refused, or would fail: the input is invalid, or a rule, a permission or the present state " +
			"forbids it; a dry run or preview with failures",
	},
	{
		command.ExitWaiting, "waiting",
		"at the end of --timeout, what the command waits for needs an approval",
	},
	{command.ExitTimedOut, "timed-out", "at the end of --timeout, what the command waits for has not come"},
	{
		command.ExitNotFound, "not-found",
		"an object that the command names does not exist: a cluster, a subscription, a plan",
	},
	{
		command.ExitUnavailable, "unavailable",
		"Chandler, or a part that it needs, cannot be reached: the same command may succeed later",
	},
}

func exitCodesHelp() string {
	var b strings.Builder
	b.WriteString(
		"Every command ends with one of these statuses. Errors are written to standard error, one sentence each.\n\n")
	var t printer.Text
	for _, c := range exitCodes {
		t.Put(fmt.Sprintf("  %d  %-12s ", c.code, c.name), c.what)
	}
	return b.String() + t.Builder.String()
}

// exitCodesTopic is no command: it cannot be run, help shows it.
func exitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "List the exit statuses of all commands", Long: exitCodesHelp()}
}

// strictly gives every command of a tree its errors of usage: cobra shows help and ends with 0 where a command below
// another is not known.
func strictly(c *cobra.Command) {
	c.SuggestionsMinimumDistance = spelling.MaxTypos
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return asUsage(c, args, err)
			}
			return nil
		}
	}
	if c.HasSubCommands() && !c.Runnable() {
		c.Args = cobra.ArbitraryArgs
		c.RunE = func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(c, args[0])
			}
			return c.Help()
		}
	}
	for _, below := range c.Commands() {
		strictly(below)
	}
}

// asUsage makes an error about arguments one of usage; where a command has others below it, an argument that it does
// not take is a misspelt one of these.
func asUsage(c *cobra.Command, args []string, err error) error {
	if c.HasAvailableSubCommands() && len(args) > 0 {
		return unknownCommand(c, args[0])
	}
	var want, got int
	if _, e := fmt.Sscanf(err.Error(), "accepts %d arg(s), received %d", &want, &got); e == nil { // as cobra says it
		if got < want {
			return command.Usagef("missing argument; usage: %s", c.UseLine())
		}
		return command.Usagef("unexpected argument %q; usage: %s", args[want], c.UseLine())
	}
	if _, has := errors.AsType[*author.ExitError](err); has {
		return err
	}
	if len(args) > 0 && strings.HasPrefix(err.Error(), "unknown command") { // as cobra says it of any argument
		return command.Usagef("unexpected argument %q; usage: %s", args[0], c.UseLine())
	}
	return command.Usagef("%w; usage: %s", err, c.UseLine())
}

func unknownCommand(c *cobra.Command, name string) error {
	if by := c.Annotations[command.ListedBy]; by != "" && name == "list" {
		return command.Usagef("unknown command %q: %s lists them", c.CommandPath()+" "+name, by)
	}
	return command.Usagef("unknown command %q%s: see %s --help", c.CommandPath()+" "+name,
		spelling.Question(c.SuggestionsFor(name)), c.CommandPath())
}

// flagError is an error about a flag, with the one that may be meant.
func flagError(c *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return command.Usagef("%w; see %s --help", err, c.CommandPath())
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	meant := spelling.Closest(unknown.GetSpecifiedName(), names)
	for i := range meant {
		meant[i] = "--" + meant[i]
	}
	return command.Usagef("%w%s; see %s --help", err, spelling.Question(meant), c.CommandPath())
}

// helpCommand is cobra's, which calls an unknown topic no error.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Show the help of a command",
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 || c == nil {
				if c == nil || len(rest) == 0 {
					c, rest = root, args
				}
				return unknownCommand(c, rest[0])
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	}
}
