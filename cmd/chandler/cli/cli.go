// Package cli is the command line of Chandler: what people know from kubectl, over the REST API of
// the gateway, and the commands that run or maintain an installation.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/conformance"
	"github.com/chandler-fleet/chandler/libs/rules"
	"github.com/chandler-fleet/chandler/libs/service"
)

// Streams is what the command line takes from its process.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	Env func(name string) (string, bool)
	Now func() time.Time
	// Terminal says that a person reads Err and types into In: only then is anything asked.
	Terminal bool
	// Columns are those of the terminal that shows Out, 0 where it is none: then no line is broken.
	Columns int
}

// System is the streams of this process.
func System() Streams {
	person := term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd()))
	var out io.Writer = os.Stdout
	columns, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if term.IsTerminal(int(os.Stdout.Fd())) {
		out = &visibly{to: out}
		if err != nil || columns <= 0 {
			columns, _, _ = term.GetSize(int(os.Stdout.Fd())) // of a terminal that does not know, no line is broken
		}
	}
	return Streams{Columns: max(columns, 0), In: os.Stdin, Out: out, Err: os.Stderr, Env: os.LookupEnv, Now: time.Now, Terminal: person}
}

// app is one run of the command line.
type app struct {
	Streams

	config string // path given by --config
	url    string
	token  string
}

// Run runs the command line of this process, whose signals end it, and returns the exit status.
func Run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	return Main(ctx, System(), os.Args[1:])
}

// Main runs the command line and returns the exit status: 0, or after one sentence on s.Err one of exitCodes.
func Main(ctx context.Context, s Streams, args []string) int {
	root := newRoot(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if text := err.Error(); text != "" { // a command that has said all has none
		// A terminal that is gone cannot be told; the status still tells.
		_, _ = fmt.Fprintln(s.Err, "error:", visible(text))
		if hint := rules.Hint(text); hint != "" {
			_, _ = fmt.Fprintln(s.Err, hint)
		}
	}
	return exitStatus(err)
}

func newRoot(s Streams) *cobra.Command {
	a := &app{Streams: s}
	root := &cobra.Command{
		Use:   "chandler",
		Short: "Supplies a fleet of Kubernetes clusters with operators from catalogs",
		Long: `Chandler indexes operator catalogs, resolves what each cluster and namespace should run, has plans
approved, applies them, and can tell at any later time what was decided, why, by whom, and what it did.

Commands that ask Chandler take its address and token from --url and --token, from CHANDLER_URL and
CHANDLER_TOKEN, or from the keys url and token of ~/.config/chandler/config.yaml.

chandler help exit-codes says what the exit statuses mean.`,
		Version:       service.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("chandler {{.Version}}\n")
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	flags := root.PersistentFlags()
	flags.StringVar(&a.config, "config", "", "file with url and token (default ~/.config/chandler/config.yaml)")
	flags.StringVar(&a.url, "url", "", "address of Chandler")
	flags.StringVar(&a.token, "token", "", "bearer token; CHANDLER_TOKEN does not show in the list of processes")

	root.AddGroup(&cobra.Group{ID: groupUse, Title: "Everyday commands:"}, &cobra.Group{ID: groupFleet, Title: "Clusters and catalogs:"},
		&cobra.Group{ID: groupOffline, Title: "Resolving what is in a file, without a server:"}, &cobra.Group{ID: groupRun, Title: "Running Chandler:"})
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(groupUse, a.getCommand(), a.describeCommand(), a.applyCommand(), a.deleteCommand(), a.uninstallCommand(), a.approveCommand(), a.rejectCommand(), a.rollbackCommand(), a.eventsCommand(), a.explainCommand(), a.whyCommand(), a.planCommand(), a.shadowCommand(), a.rulesCommand())
	add(groupFleet, a.clusterCommand(), a.catalogCommand(), a.packagesRootCommand())
	add(groupOffline, conformance.Commands(conformance.Env{In: a.In, Out: a.Out})...)
	add(groupRun, a.devCommand(), a.keysCommand(), a.tokenCommand(), a.migrateCommand(), a.busCommand(), a.effectsCommand(), a.logCommand(), a.versionCommand())
	root.AddCommand(exitCodesTopic())
	root.SetHelpCommand(helpCommand(root))
	root.SetFlagErrorFunc(flagError)
	strictly(root)
	return root
}

const (
	groupUse     = "use"
	groupFleet   = "fleet"
	groupOffline = "offline"
	groupRun     = "run"
)

// client returns the client for the address and token that flags, environment or file name.
func (a *app) client() (*client.Client, error) {
	s, err := a.settings()
	if err != nil {
		return nil, err
	}
	c, err := client.New(s.URL, s.Token)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return c, nil
}

// say writes one line of a result.
func (a *app) say(format string, args ...any) error {
	_, err := fmt.Fprintf(a.Out, format+"\n", args...)
	return err
}

// many is no bound of arguments.
const many = -1

// needs wants one argument and at most so many, and shows the line of usage otherwise.
func needs(most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return usagef("something is missing: %s", c.UseLine())
		case most != many && len(args) > most:
			return usagef("what is %q? usage: %s", args[most], c.UseLine())
		}
		return nil
	}
}
