package operators

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	chandler "github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
	"github.com/chandler-fleet/chandler/libs/client"
)

const (
	// followEvery is how often lines are asked for while some come; followRarely while none come, after as many tries.
	// Each question is one to the cluster.
	followEvery  = time.Second
	followRarely = 3 * time.Second
	quietTries   = 10
	// everyLine is --tail as kubectl has it where it is not given.
	everyLine = -1
)

type logOptions struct {
	command.Scope
	client.GetOperatorLogsParams

	format    string
	follow    bool
	times     bool
	prefix    bool
	prefixed  bool // --prefix was given
	tail      int64
	since     time.Duration
	sinceTime string
}

// LogsCommand is chandler logs.
func LogsCommand(a *command.Env) *cobra.Command {
	var o logOptions
	c := &cobra.Command{
		Use:   "logs OPERATOR",
		Short: "Show what the pods of an installed operator have written",
		Long: `Shows lines of the pods of the operator's Deployments, by time, as the cluster has them; Chandler keeps none of them.
OPERATOR is a ClusterServiceVersion, a subscription or a package, also as operator/NAME. Without --container it is the
container that kubectl logs would take.

With --follow it goes on with what is written, until Ctrl-C: over restarts, of which the last words are shown, too, and
with the pods of an upgrade of the Deployment. It asks the cluster every one to three seconds.
Without it, the status is 1 where no container could be read.

Logs may hold secrets. You need the right to get logs, which the role operator-admin has.`,
		Example: `  chandler logs operator/tidegauge --cluster east-1 -n ports
  chandler logs tidegauge --cluster east-1 -n ports -f --tail 20
  chandler logs east-1/ports/tidegauge.v1.2.0 -c manager --previous`,
		Args: command.RequireArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.prefixed = cmd.Flags().Changed("prefix")
			return logs(cmd.Context(), a, o, args[0])
		},
	}
	o.Scope.Flags(c)
	f := c.Flags()
	f.StringVarP(&o.Container, "container", "c", "", "this container of each pod")
	f.BoolVar(&o.AllContainers, "all-containers", false, "all containers of each pod")
	f.StringVar(&o.Deployment, "deployment", "", "only pods of this Deployment of the operator")
	f.StringVar(&o.Pod, "pod", "", "only this pod")
	f.BoolVarP(&o.follow, "follow", "f", false, "go on with what is written, until Ctrl-C")
	f.BoolVarP(&o.Previous, "previous", "p", false, "what the container before the last restart wrote")
	f.Int64Var(&o.tail, "tail", everyLine, "only so many last lines of each container; -1 is all")
	f.DurationVar(&o.since, "since", 0, "only lines that are younger, such as 5m or 2h")
	f.StringVar(&o.sinceTime, "since-time", "", "only lines since a time (RFC 3339)")
	f.BoolVar(&o.times, "timestamps", false, "put the time before each line")
	f.BoolVar(&o.prefix, "prefix", false,
		"put pod and container before each line; without it, where lines of several are shown")
	f.StringVarP(&o.format, "output", "o", "", "json writes each line as an object, with pod, container and time")
	return c
}

// check reads the flags, and refuses those that contradict each other.
func (o *logOptions) check(now time.Time) error {
	switch {
	case o.format != printer.FormatTable && o.format != printer.FormatJSON:
		return command.Usagef("output format %q: logs are written as lines, or as json", o.format)
	case o.AllContainers && o.Container != "":
		return command.Usagef("either --container or --all-containers, not both")
	case o.follow && o.Previous:
		return command.Usagef("either --follow or --previous, not both: what a container wrote before has ended")
	case o.since != 0 && o.sinceTime != "":
		return command.Usagef("either --since or --since-time, not both")
	case o.since < 0:
		return command.Usagef("--since %s: want a time that is over, such as 5m", o.since)
	case o.tail < everyLine:
		return command.Usagef("--tail %d: want a number of lines, or -1 for all", o.tail)
	}
	if o.sinceTime != "" {
		at, err := time.Parse(time.RFC3339, o.sinceTime)
		if err != nil {
			return command.Usagef("--since-time %q: want a time such as 2026-03-04T10:00:00Z", o.sinceTime)
		}
		o.since = max(now.Sub(at), time.Second)
	}
	if o.since > 0 { // never younger than was asked for
		o.SinceSeconds = int64((o.since + time.Second - 1) / time.Second)
	}
	o.Tail, o.FromNow = max(o.tail, 0), o.tail == 0
	return nil
}

// loggedOperator is the name in operator/NAME, and in what names an operator without its kind.
func loggedOperator(a *command.Env, arg string) (string, error) {
	kind, name, slash := strings.Cut(arg, "/")
	k, unknown := kinds.Find(a, kind)
	switch {
	case !slash || unknown != nil: // NAME, or CLUSTER/NAMESPACE/NAME
		return arg, nil //nolint:nilerr // no kind is named
	case k.Singular() != kinds.KindOperator && k.Singular() != kinds.KindSubscription:
		return "", command.Usagef("%s: operators have logs, of other kinds there are none", arg)
	}
	return name, nil
}

func logs(ctx context.Context, a *command.Env, o logOptions, arg string) error {
	if err := o.check(a.Now()); err != nil {
		return err
	}
	name, err := loggedOperator(a, arg)
	if err != nil {
		return err
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	ref, _, err := kinds.NamedOperator(ctx, a, c, o.Scope, name)
	if err != nil {
		return err
	}
	w := logWriter{
		Env: a, options: o, sources: map[string]bool{}, failed: map[string]bool{}, told: map[string]bool{},
	}
	if o.follow {
		return w.followLogs(ctx, c, ref)
	}
	if _, err := w.writeAll(ctx, c, ref); err != nil {
		return err
	}
	return w.nothingRead(ref)
}

// logWriter writes lines, and says once what is the matter with which container.
type logWriter struct {
	*command.Env

	options logOptions
	sources map[string]bool // containers of which lines were seen
	failed  map[string]bool // those that could not be read, or not to the end
	asked   int64           // so many were asked
	told    map[string]bool
}

// nothingRead is an error where no container could be read: a script must not take that for one that wrote nothing.
func (w *logWriter) nothingRead(ref chandler.Ref) error {
	switch {
	case w.asked == 0:
		return fmt.Errorf("operator/%s has no pods whose logs could be read", ref)
	case len(w.sources) == 0 && int64(len(w.failed)) == w.asked:
		return fmt.Errorf("no container of operator/%s could be read", ref)
	default:
		return nil
	}
}

// followLogs goes on until Ctrl-C, which is how it ends. A cluster that cannot be asked for a while does not end it.
func (w *logWriter) followLogs(ctx context.Context, c *chandler.Client, ref chandler.Ref) error {
	for quiet := 0; ; quiet++ {
		lines, err := w.writeAll(ctx, c, ref)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it is how following ends
		case err != nil && w.options.After != "" && chandler.IsStatus(err, http.StatusServiceUnavailable):
			w.warn(err.Error())
		case err != nil:
			return err
		}
		if lines > 0 {
			quiet = 0
		}
		if !pause(ctx, quiet) {
			return nil
		}
	}
}

// writeAll writes what there is now, part by part, and counts the lines.
func (w *logWriter) writeAll(ctx context.Context, c *chandler.Client, ref chandler.Ref) (lines int, err error) {
	for {
		part, err := c.Logs(ctx, ref, w.options.GetOperatorLogsParams)
		if err == nil {
			err = w.write(part)
		}
		switch {
		case err != nil:
			return lines, err
		case part.More && part.After == w.options.After:
			return lines, fmt.Errorf("the logs of operator/%s do not go on from where they are", ref)
		}
		lines += len(part.Lines)
		w.options.After = part.After
		if !part.More {
			return lines, nil
		}
	}
}

// pause waits until lines are asked for again, and reports whether they are to be.
func pause(ctx context.Context, quiet int) bool {
	wait := followEvery
	if quiet > quietTries {
		wait = followRarely
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (w *logWriter) write(part client.OperatorLogs) error {
	for _, l := range part.Lines {
		w.sources[l.Pod+"/"+l.Container] = true
	}
	prefix := w.options.prefix || !w.options.prefixed && len(w.sources) > 1
	for _, l := range part.Lines {
		if err := w.line(l, prefix); err != nil {
			return err
		}
	}
	for _, c := range part.Choices {
		w.say("container " + c.Container + " was taken out of " + strings.Join(c.Containers, ", ") +
			": choose with --container or --all-containers")
	}
	w.asked = part.Containers
	for _, p := range part.Problems {
		w.failed[p.Pod+"/"+p.Container] = true
		w.warn("pod " + p.Pod + ", container " + p.Container + ": " + p.Message)
	}
	if part.LeftOut > 0 {
		w.warn(printer.Plural(int(part.LeftOut), "more container") +
			" of the operator cannot be shown at once: choose with --deployment, --pod or --container")
	}
	if part.MorePods {
		w.warn("a Deployment of the operator has more pods than are looked at: choose one with --pod")
	}
	return nil
}

func (w *logWriter) line(l client.LogLine, prefix bool) error {
	if w.options.format == printer.FormatJSON {
		return json.NewEncoder(w.Out).Encode(l)
	}
	var before []string
	if prefix {
		before = append(before, "[pod/"+l.Pod+"/"+l.Container+"]")
	}
	if w.options.times {
		before = append(before, l.Time)
	}
	_, err := fmt.Fprintln(w.Out, strings.Join(append(slices.Clip(before), l.Text), " "))
	return err
}

// warn warns on standard error, once.
func (w *logWriter) warn(text string) { w.say("warning: " + text) }

// say says something on standard error, once.
func (w *logWriter) say(text string) {
	if w.told[text] {
		return
	}
	w.told[text] = true
	// A terminal that is gone cannot be told.
	_, _ = fmt.Fprintln(w.Err, plain.Text(text))
}
