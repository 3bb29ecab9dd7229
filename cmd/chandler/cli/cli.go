// Package cli is the command line of Chandler: commands like those of kubectl, over the REST API of the gateway, and
// the commands that run or maintain an installation. Each group of commands is a package below.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/admin"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/catalogs"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/clusters"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/completion"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/explain"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/fleet"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/manual"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/objects"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/operators"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/plans"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/webhooks"
	"github.com/chandler-fleet/chandler/cmd/chandler/conformance"
	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
	"github.com/chandler-fleet/chandler/libs/rules"
	"github.com/chandler-fleet/chandler/libs/service"
)

// System is the streams of this process.
func System() command.Streams {
	person := term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd()))
	var out io.Writer = os.Stdout
	columns, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if term.IsTerminal(int(os.Stdout.Fd())) {
		out = &printer.SanitizingWriter{To: out}
		if err != nil || columns <= 0 {
			columns, _, _ = term.GetSize(int(os.Stdout.Fd())) // of a terminal that does not know, no line is broken
		}
	}
	return command.Streams{
		Columns: max(columns, 0), In: os.Stdin, Out: out, Err: os.Stderr, Env: os.LookupEnv,
		Now: time.Now, Terminal: person, Program: pluginName(os.Args),
	}
}

// pluginName is how a person calls the program as a plugin of kubectl, which finds it as kubectl-chandler; else "".
func pluginName(args []string) string {
	if len(args) > 0 && strings.HasPrefix(filepath.Base(args[0]), "kubectl-chandler") {
		return "kubectl chandler"
	}
	return ""
}

// Run runs the command line of this process, whose signals end it, and returns the exit status.
func Run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	return Main(ctx, System(), os.Args[1:])
}

// Main runs the command line and returns the exit status: 0, or after one sentence on s.Err one of exitCodes.
func Main(ctx context.Context, s command.Streams, args []string) int {
	root := newRoot(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if text := err.Error(); text != "" { // a command that has said all has none
		// A terminal that is gone cannot be told; the status still tells.
		_, _ = fmt.Fprintln(s.Err, "error:", plain.Text(text))
		if hint := rules.Hint(text); hint != "" {
			_, _ = fmt.Fprintln(s.Err, hint)
		}
	}
	return command.ExitStatus(err)
}

func newRoot(s command.Streams) *cobra.Command {
	a := &command.Env{Streams: s}
	root := &cobra.Command{
		Use:   "chandler",
		Short: "Supplies a fleet of Kubernetes clusters with operators from catalogs",
		Long: `Chandler indexes operator catalogs, resolves which operators each cluster and namespace should run, asks for
approval of install plans, applies them, and keeps a record of what was decided, why, by whom, and what was done.

The address and the token of Chandler come from --url and --token, from CHANDLER_URL and CHANDLER_TOKEN, or from the
current context (chandler config). Without a token, that of chandler login is used.

chandler help exit-codes lists the exit statuses.`,
		Version:       service.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	if s.Program != "" { // lines of usage say what was typed
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: s.Program}
	}
	root.SetVersionTemplate("chandler {{.Version}}\n")
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	flags := root.PersistentFlags()
	flags.StringVar(&a.Config, "config", "", "file of contexts (default ~/.config/chandler/config.yaml)")
	flags.StringVar(&a.Context, "context", "", "name of the context to use")
	flags.StringVar(&a.URL, "url", "", "address of Chandler")
	flags.StringVar(&a.Token, "token", "",
		"bearer token; better set CHANDLER_TOKEN, which the list of processes does not show")

	root.AddGroup(&cobra.Group{ID: groupUse, Title: "Everyday commands:"},
		&cobra.Group{ID: groupFleet, Title: "Clusters and catalogs:"},
		&cobra.Group{ID: groupOffline, Title: "Resolving a case from a file, without a server:"},
		&cobra.Group{ID: groupRun, Title: "Running Chandler:"})
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(groupUse, objects.StatusCommand(a), objects.GetCommand(a), objects.DescribeCommand(a), objects.ApplyCommand(a),
		objects.DiffCommand(a), objects.DeleteCommand(a), objects.EditCommand(a), objects.LabelCommand(a),
		objects.AnnotateCommand(a),
		operators.UninstallCommand(a), operators.LogsCommand(a),
		plans.ApproveCommand(a), plans.RejectCommand(a), plans.RollbackCommand(a),
		objects.WaitCommand(a), objects.EventsCommand(a), explain.Command(a), explain.WhyCommand(a),
		plans.PlanCommand(a), plans.ShadowCommand(a), explain.RulesCommand(a), admin.ConfigCommand(a))
	add(groupFleet, clusters.Command(a), fleet.Command(a), catalogs.Command(a), catalogs.PackagesCommand(a),
		webhooks.Command(a))
	add(groupOffline, conformance.Commands(conformance.Env{In: a.In, Out: a.Out})...)
	add(groupRun, admin.DevCommand(a), admin.KeysCommand(a), admin.TokenCommand(a), admin.IdentityCommand(a),
		admin.QuotaCommand(a),
		admin.LoginCommand(a), admin.LogoutCommand(a), admin.AuthCommand(a), admin.MigrateCommand(a),
		admin.BusCommand(a), admin.EffectsCommand(a), admin.LogCommand(a), admin.InstallerCommand(a),
		admin.DoctorCommand(a), admin.VersionCommand(a), manual.Command(a))
	root.AddCommand(exitCodesTopic())
	root.SetHelpCommand(helpCommand(root))
	root.SetFlagErrorFunc(flagError)
	addCompletion(root)
	completion.Register(a, root)
	strictly(root)
	return root
}

// addCompletion adds the command that cobra would add later: then an unknown shell would be no error.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		for _, shell := range c.Commands() {
			shell.Example = "  " + shell.CommandPath()
		}
	}
}

const (
	groupUse     = "use"
	groupFleet   = "fleet"
	groupOffline = "offline"
	groupRun     = "run"
)
