// Package clusters holds chandler cluster, which registers, configures, taints, cordons and removes clusters.
package clusters

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/objects"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// maxKubeconfig is what the gateway takes.
const maxKubeconfig = 256 << 10

// Command is chandler cluster.
func Command(a *command.Env) *cobra.Command {
	c := &cobra.Command{Use: "cluster", Short: "Register, list, configure, taint, cordon and remove clusters"}
	c.AddCommand(clusterAddCommand(a), objects.ListCommand(a, "clusters"), clusterSetCommand(a),
		taintCommand(a), cordonCommand(a), uncordonCommand(a), clusterRemoveCommand(a),
		clusterCredentialsCommand(a), agentConfigCommand(a), joinTokenCommand(a))
	c.AddCommand(agentDecisions(a)...)
	return c
}

func clusterAddCommand(a *command.Env) *cobra.Command {
	var from source
	var in model.RegisterCluster
	var agent bool
	c := &cobra.Command{
		Use:   "add NAME {--kubeconfig FILE [--bootstrap] | --agent}",
		Short: "Register a cluster",
		Long: `Registers a cluster under a name. The kubeconfig must contain a token or certificates, an address that the installer
can reach, and belong to a cluster administrator. It is stored encrypted and never shown. After some seconds
chandler get clusters shows the cluster as Connected, or the reason why it is not.

` + bootstrapHelp + `

With --agent there is no kubeconfig: chandler-agent in the cluster serves it, and connects to NATS itself. What it is
to know is written by chandler cluster agent-config.`,
		Example: `  chandler cluster add east-1 --kubeconfig east-1.kubeconfig --label region=east
  chandler cluster add field-7 --agent
  chandler cluster add west-1 --bootstrap --context west-1`,
		Args: command.RequireArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			in.Name = args[0]
			if agent {
				in.Access, err = events.AccessAgent, from.none()
			} else {
				in.Kubeconfig, err = from.kubeconfig(cmd.Context(), a)
			}
			if err != nil {
				return err
			}
			if _, err := c.RegisterCluster(cmd.Context(), in); err != nil {
				return err
			}
			return a.Say("cluster/%s registered", args[0])
		},
	}
	from.flags(c)
	waiveFlag(c, &in.Waive)
	c.Flags().BoolVar(&agent, "agent", false, "an agent in the cluster serves it: there is no kubeconfig")
	c.Flags().StringToStringVar(&in.Labels, "label", nil, "label as key=value; several with commas")
	c.Flags().StringToStringVar(&in.Taints, "taint", nil,
		"taint as key=value, which keeps fleet subscriptions away; several with commas")
	return c
}

func waiveFlag(c *cobra.Command, waive *[]string) {
	c.Flags().StringSliceVar(waive, "waive", nil,
		"allow for this kubeconfig what is refused otherwise: http, insecure-skip-tls-verify, proxy-url")
}

func clusterCredentialsCommand(a *command.Env) *cobra.Command {
	var from source
	var waive []string
	c := &cobra.Command{
		Use: "credentials NAME --kubeconfig FILE [--bootstrap]", Short: "Replace the kubeconfig of a cluster",
		Args: command.RequireArgs(1),
		Long: `Replaces the kubeconfig by which Chandler reaches a cluster, for example before a token expires.

` + bootstrapHelp,
		Example: `  chandler cluster credentials east-1 --kubeconfig east-1.kubeconfig
  kubectl config view --raw --flatten --minify | chandler cluster credentials east-1 --kubeconfig -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			config, err := from.kubeconfig(cmd.Context(), a)
			if err != nil {
				return err
			}
			in := model.ReplaceCredentials{Kubeconfig: config, Waive: waive}
			if _, err := c.ReplaceCredentials(cmd.Context(), args[0], in); err != nil {
				return command.OrNoCluster(cmd.Context(), c, args[0], err)
			}
			return a.Say("cluster/%s credentials replaced", args[0])
		},
	}
	from.flags(c)
	waiveFlag(c, &waive)
	return c
}

func clusterSetCommand(a *command.Env) *cobra.Command {
	var in model.ConfigureCluster
	var changes []string
	c := &cobra.Command{
		Use: "set NAME [--mirror none|csv|all] [--drift correct|report] [--optional GROUP,GROUP/KIND,...|none] " +
			"[--events on|off] [--copied-csvs on|off|olmconfig] [--label KEY=VALUE | --label KEY-]...",
		Short: "Change the settings or labels of a cluster",
		Long: `Changes the settings of a cluster; settings that are not given stay as they are.

--mirror sets which of OLM's kinds Chandler mirrors in the cluster for people and tools that read them there: none,
ClusterServiceVersions (csv, the default), or all. Editing or deleting a mirrored object has no effect.

--drift sets what happens to edits of objects that Chandler manages: they are corrected (correct, the default) or only
reported (report).

--optional lists API groups, or kinds as GROUP/KIND, that operators do not wait for if the cluster does not serve
them (monitoring.coreos.com by default): their objects are skipped, and written when the kind appears. With none,
operators wait for every kind.

--events sets whether Kubernetes Events are written about mirrored objects, as OLM does: on (the default if anything
is mirrored) or off.

--copied-csvs sets whether mirrored ClusterServiceVersions are copied to the namespaces that their operators serve, as
OLM does: on, off, or what the OLMConfig of the cluster says (olmconfig, the default; no copies if it says nothing).
chandler apply of an OLMConfig sets it to on or off.

--label KEY=VALUE sets a label and --label KEY- removes it; other labels stay. Approval policies that select
clusters by labels are applied at once.`,
		Example: `  chandler cluster set east-1 --mirror all --drift report
  chandler cluster set east-1 --label stage=production --label trial-`,
		Args: command.RequireArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if in.Labels, err = command.Changes("label", changes); err != nil {
				return err
			}
			if changesNothing(in) {
				return command.Usagef(noChange)
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			out, err := c.ConfigureCluster(cmd.Context(), args[0], in)
			if err != nil {
				return command.OrNoCluster(cmd.Context(), c, args[0], err)
			}
			return a.Say("cluster/%s set: mirror %s, drift %s, optional %s, events %s, copied CSVs %s, labels %s", args[0],
				out.Settings.Mirror, out.Settings.Drift, out.Settings.Optional, out.Settings.Events,
				out.Settings.CopiedCSVs, printer.Labels(out.Labels))
		},
	}
	c.Flags().StringVar(&in.Mirror, "mirror", "", "kinds of OLM that are mirrored in the cluster: none, csv, all")
	c.Flags().StringVar(&in.Drift, "drift", "", "what happens to edits of managed objects: correct, report")
	c.Flags().StringVar(&in.Optional, "optional", "",
		"API groups, or GROUP/KIND, that operators do not wait for; none for no kind")
	c.Flags().StringVar(&in.Events, "events", "",
		"whether Kubernetes Events are written about mirrored objects: on, off")
	c.Flags().StringVar(&in.CopiedCSVs, "copied-csvs", "",
		"whether ClusterServiceVersions are copied to the namespaces that they serve: on, off, olmconfig")
	c.Flags().StringArrayVar(&changes, "label", nil, "KEY=VALUE sets a label, KEY- removes it; can be repeated")
	return c
}

const noChange = "nothing to change: give --mirror, --drift, --optional, --events, --copied-csvs or --label"

func changesNothing(in model.ConfigureCluster) bool {
	return in.Mirror == "" && in.Drift == "" && in.Optional == "" && in.Events == "" && in.CopiedCSVs == "" &&
		len(in.Labels) == 0
}

func clusterRemoveCommand(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Remove a cluster from Chandler; installed operators stay",
		Args: command.RequireArgs(1),
		Long: `Removes a cluster from Chandler: its kubeconfig is erased, and nothing there is managed any more. Installed
operators stay and keep running.`,
		Example: "  chandler cluster remove east-1",
		RunE: func(cmd *cobra.Command, args []string) error {
			return objects.Remove(cmd.Context(), a, kinds.Clusters(a), args[0])
		},
	}
}

func readKubeconfig(a *command.Env, path string) (string, error) {
	var raw []byte
	var err error
	switch path {
	case "":
		return "", command.Usagef("missing --kubeconfig: the file by which Chandler reaches the cluster")
	case "-":
		raw, err = io.ReadAll(io.LimitReader(a.In, maxKubeconfig+1))
	default:
		raw, err = os.ReadFile(path)
	}
	switch {
	case err != nil:
		return "", err
	case len(raw) > maxKubeconfig:
		return "", command.Refused(fmt.Errorf("the kubeconfig is larger than %d bytes", maxKubeconfig))
	case strings.TrimSpace(string(raw)) == "":
		return "", command.Refused(errors.New("the kubeconfig is empty"))
	}
	return string(raw), nil
}
