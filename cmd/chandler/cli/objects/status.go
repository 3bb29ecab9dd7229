package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// statusShown is how many objects chandler status names of each sort: all of its sorts fit a screen.
const statusShown = 5

// fleetStatus is what chandler status says. Lists hold the first objects of a sort; Total counts all.
type fleetStatus struct {
	Clusters         map[string]int       `json:"clusters"` // by state
	Total            model.SummaryCounts  `json:"total"`
	RequiresApproval []model.InstallPlan  `json:"requiresApproval"`
	FailedOperators  []model.Operator     `json:"failedOperators"`
	Failing          []model.Subscription `json:"failing"`
	UpgradeAvailable []model.Subscription `json:"upgradeAvailable"`
	Drifted          []model.Operator     `json:"drifted"`
	Deprecated       []model.Subscription `json:"deprecated"`
	BreakGlass       *model.BreakGlassUse `json:"breakGlass,omitempty"`
}

// StatusCommand is chandler status.
func StatusCommand(a *command.Env) *cobra.Command {
	var s command.Scope
	var format string
	c := &cobra.Command{
		Use: "status", Short: "Show what waits for approval, what fails, what is behind and what has drifted",
		Args: cobra.NoArgs,
		Long: `Shows how the fleet does, in numbers, and of what needs somebody the first ` + strconv.Itoa(statusShown) +
			` objects with the command that lists
all of them: install plans that require approval, operators and subscriptions that fail, subscriptions with an upgrade
available, operators that have drifted, and subscriptions to what is deprecated. --cluster and --namespace narrow it.`,
		Example: `  chandler status
  chandler status --cluster east-1
  chandler status -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "" && format != printer.FormatJSON {
				return command.Usagef("output format %q: want json, or none for people", format)
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			got, err := readStatus(cmd.Context(), c, s)
			if err == nil && s.Cluster != "" {
				err = command.CheckCluster(cmd.Context(), c, s.Cluster)
			}
			if err == nil {
				err = command.TellBreakGlass(a, got.BreakGlass)
			}
			if err != nil {
				return err
			}
			if format == printer.FormatJSON {
				enc := json.NewEncoder(a.Out)
				enc.SetIndent("", "  ")
				return enc.Encode(got)
			}
			return got.write(a, s)
		},
	}
	s.Flags(c)
	c.Flags().StringVarP(&format, "output", "o", "", "json")
	return c
}

// readStatus asks for the numbers, and then only for what there is.
func readStatus(ctx context.Context, c *client.Client, s command.Scope) (f fleetStatus, err error) {
	f.Clusters = map[string]int{}
	all, err := c.Clusters(ctx, client.Selection{})
	if err != nil {
		return f, err
	}
	for _, k := range all {
		if s.Cluster == "" || s.Cluster == k.Name {
			f.Clusters[k.State]++
		}
	}
	sum, err := c.Summary(ctx, client.Selection{Cluster: s.Cluster, Namespace: s.Namespace, Limit: 1})
	if err != nil {
		return f, err
	}
	f.Total, f.BreakGlass = sum.Total, sum.BreakGlass
	choose := func(state, phase string) client.Selection {
		return client.Selection{
			Cluster: s.Cluster, Namespace: s.Namespace, State: state, Phase: phase, Limit: statusShown,
		}
	}
	f.RequiresApproval, err = firstOf(ctx, f.Total.RequiresApproval, c.InstallPlans,
		choose("", model.StateRequiresApproval), err)
	f.FailedOperators, err = firstOf(ctx, f.Total.Failing, c.Operators, choose("", "Failed"), err)
	f.Failing, err = firstOf(ctx, f.Total.Failing, c.Subscriptions, choose(model.StateFailing, ""), err)
	// What is installed and failed is named as an operator.
	f.Failing = slices.DeleteFunc(f.Failing, func(s model.Subscription) bool { return s.Status.Phase == "Failed" })
	f.UpgradeAvailable, err = firstOf(ctx, f.Total.UpgradeAvailable, c.Subscriptions,
		choose(model.StateUpgradeAvailable, ""), err)
	f.Drifted, err = firstOf(ctx, f.Total.Drifted, c.Operators, choose(model.OperatorDrifted, ""), err)
	f.Deprecated, err = firstOf(ctx, f.Total.Deprecated, c.Subscriptions, choose(model.StateDeprecated, ""), err)
	return f, err
}

// firstOf asks for the first things of a sort of which there are n; none is an empty list, in JSON, too.
func firstOf[T any](
	ctx context.Context, n int, list func(context.Context, client.Selection) ([]T, error), s client.Selection,
	failed error,
) ([]T, error) {
	if failed != nil || n == 0 {
		return []T{}, failed
	}
	return list(ctx, s)
}

// write writes it for people.
func (f fleetStatus) write(a *command.Env, s command.Scope) error {
	p := printer.NewPage(a.Out, a.Now)
	n := 0
	for _, of := range f.Clusters {
		n += of
	}
	p.Line("Clusters", counted(n, f.Clusters))
	p.Line("Operators", counted(f.Total.Operators, f.Total.Phases))
	p.Line("Subscriptions", strconv.Itoa(f.Total.Subscriptions))
	section := func(title, more string, n int, rows [][]string) {
		if n == 0 {
			return
		}
		p.Section(fmt.Sprintf("%s (%d)", title, n))
		for _, r := range rows {
			p.Row(r...)
		}
		p.Row(more + scopeFlags(s))
	}
	section("Waiting for approval", "chandler get ip --phase RequiresApproval", f.Total.RequiresApproval,
		rowsOf(f.RequiresApproval, func(v model.InstallPlan) []string {
			csvs := make([]string, len(v.Bundles))
			for i, b := range v.Bundles {
				csvs[i] = b.CSV
			}
			return []string{
				client.Ref{Cluster: v.Cluster, Namespace: v.Namespace, Name: v.Name}.String(),
				strings.Join(csvs, ","), p.Age(v.ProposedAt),
			}
		}))
	section("Failing", "chandler get sub --state Failing", f.Total.Failing,
		append(rowsOf(f.FailedOperators, func(o model.Operator) []string {
			return []string{operatorKey(o), o.Reason, p.Age(o.UpdatedAt)}
		}), rowsOf(f.Failing, func(v model.Subscription) []string {
			return []string{subscriptionKey(v), whyFailing(v), p.Age(v.UpdatedAt)}
		})...))
	section("Upgrade available", "chandler get sub --state UpgradeAvailable -o wide", f.Total.UpgradeAvailable,
		rowsOf(f.UpgradeAvailable, func(v model.Subscription) []string {
			return []string{subscriptionKey(v), v.Status.InstalledCSV, v.Status.CurrentCSV}
		}))
	section("Drifted", "chandler get operators --state Drifted", f.Total.Drifted,
		rowsOf(f.Drifted, func(o model.Operator) []string {
			if o.Drift == nil { // it ended meanwhile
				return []string{operatorKey(o)}
			}
			return []string{operatorKey(o), printer.Plural(o.Drift.Objects, "object"), p.Age(o.Drift.Since)}
		}))
	section("Deprecated", "chandler get sub --state Deprecated", f.Total.Deprecated,
		rowsOf(f.Deprecated, func(v model.Subscription) []string {
			return []string{subscriptionKey(v), strings.Join(v.Status.Deprecated, ", ")}
		}))
	return p.Flush()
}

func rowsOf[T any](list []T, one func(T) []string) [][]string {
	rows := make([][]string, len(list))
	for i, v := range list {
		rows[i] = one(v)
	}
	return rows
}

// counted is a number with what it consists of, the largest part first.
func counted(n int, parts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(parts), func(x, y string) int {
		if parts[x] != parts[y] {
			return parts[y] - parts[x]
		}
		return strings.Compare(x, y)
	})
	if n == 0 || len(names) == 0 {
		return strconv.Itoa(n)
	}
	words := make([]string, len(names))
	for i, name := range names {
		words[i] = strconv.Itoa(parts[name]) + " " + name
	}
	return strconv.Itoa(n) + ": " + strings.Join(words, ", ")
}

// scopeFlags are the flags that a command takes to look at the same part of the fleet.
func scopeFlags(s command.Scope) string {
	flags := ""
	if s.Cluster != "" {
		flags += " --cluster " + s.Cluster
	}
	if s.Namespace != "" {
		flags += " -n " + s.Namespace
	}
	return flags
}

// whyFailing is the condition that a subscription fails by.
func whyFailing(s model.Subscription) string {
	for _, c := range s.Status.Conditions {
		if c.Status == "True" && strings.HasSuffix(c.Type, "Failed") {
			return c.Type
		}
	}
	return s.ShownState()
}

func operatorKey(o model.Operator) string {
	return client.Ref{Cluster: o.Cluster, Namespace: o.Namespace, Name: o.Name}.String()
}

func subscriptionKey(s model.Subscription) string {
	return client.Ref{Cluster: s.Cluster, Namespace: s.Namespace, Name: s.Name}.String()
}
