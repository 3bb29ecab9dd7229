// Package completion completes names in shells as they are at the gateway now: kinds, objects, clusters, namespaces,
// packages, catalogs and channels.
package completion

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// timeout bounds what a person waits for who pressed a key: a gateway that is away must not hang the shell.
const timeout = 2 * time.Second

// source gives names.
type source func(ctx context.Context, c *client.Client) ([]string, error)

// Register gives the commands of a tree their completions.
func Register(a *command.Env, root *cobra.Command) {
	r := &registry{a}
	r.walk(root)
}

type registry struct{ a *command.Env }

func (r *registry) walk(c *cobra.Command) {
	for _, below := range c.Commands() {
		r.walk(below)
	}
	for flag, complete := range map[string]cobra.CompletionFunc{
		"cluster": r.live(r.clusters), "namespace": r.live(r.namespaces), "catalog": r.live(r.names(kinds.Catalogs)),
		"package": r.live(r.packages), "channel": r.channels, "context": r.contexts,
	} {
		if f := c.Flags().Lookup(flag); f == nil {
			continue
		}
		if _, has := c.GetFlagCompletionFunc(flag); has {
			continue
		}
		if err := c.RegisterFlagCompletionFunc(flag, complete); err != nil {
			panic(err) // the flag was looked up above
		}
	}
	if c.ValidArgsFunction == nil {
		c.ValidArgsFunction = r.arguments(c)
	}
}

// arguments are those of a command, by its line of usage: nil where it takes no names of objects.
func (r *registry) arguments(c *cobra.Command) cobra.CompletionFunc {
	words := strings.Fields(c.Use)
	parent := ""
	if c.HasParent() {
		parent = c.Parent().Name()
	}
	switch {
	case len(words) < 2:
		return nil
	case strings.Contains(c.Use, "KIND"), words[0] == "explain":
		return r.targets
	case words[0] == "approve", words[0] == "reject":
		return r.kind("installplan", kinds.PhaseRequiresApproval)
	case slices.Contains(words, "PLAN"):
		return r.kind("installplan", "")
	case words[0] == "rollback":
		return r.kind(kinds.KindSubscription, "")
	case words[0] == "uninstall", words[0] == "why", words[0] == "logs":
		return r.kind(kinds.KindOperator, "")
	case parent == "fleet" && slices.Contains(words, "CLUSTER"):
		return r.fleetThenCluster
	case parent == "fleet":
		return r.kind(kinds.KindFleetSubscription, "")
	case parent == "webhook":
		return r.kind("webhook", "")
	case parent == "config":
		return r.contexts
	case words[0] == "taint":
		return r.taints
	case strings.HasPrefix(words[1], "NAME") && parent == "cluster":
		return r.live(r.clusters)
	case parent == "catalog" && (words[1] == "NAME" || words[1] == "CATALOG"):
		return r.live(r.names(kinds.Catalogs))
	}
	return nil
}

// fleetThenCluster completes a fleet subscription and a cluster.
func (r *registry) fleetThenCluster(
	cmd *cobra.Command, args []string, typed string,
) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return r.kind(kinds.KindFleetSubscription, "")(cmd, args, typed)
	}
	return r.live(r.clusters)(cmd, args, typed)
}

// ask runs a source for as long as a person waits; what goes wrong completes nothing.
func (r *registry) ask(of source) []string {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	got := make(chan []string, 1)
	go func() { // a program that gives a token, or a provider, may take longer
		a := *r.a
		a.Terminal = false // nobody can be asked
		var names []string
		if c, err := a.Client(); err == nil {
			names, _ = of(ctx, c) // without an answer there are no names
		}
		got <- names
	}()
	select {
	case names := <-got:
		slices.Sort(names)
		return slices.Compact(names)
	case <-ctx.Done():
		return nil
	}
}

func (r *registry) live(of source) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return r.ask(of), cobra.ShellCompDirectiveNoFileComp
	}
}

func (r *registry) clusters(ctx context.Context, c *client.Client) ([]string, error) {
	all, err := c.Clusters(ctx, client.Selection{})
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names, err
}

// taints completes the name of a cluster, and then the taints that can be taken from it.
func (r *registry) taints(c *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return r.live(r.clusters)(c, args, toComplete)
	}
	return r.ask(func(ctx context.Context, c *client.Client) ([]string, error) {
		cluster, err := c.Cluster(ctx, args[0])
		var names []string
		for key := range cluster.Taints {
			names = append(names, key+"-")
		}
		return names, err
	}), cobra.ShellCompDirectiveNoFileComp
}

// namespaces are those in which something was asked for.
func (r *registry) namespaces(ctx context.Context, c *client.Client) ([]string, error) {
	s, err := r.a.InContext(command.Scope{})
	if err != nil {
		return nil, err
	}
	where := client.Selection{Cluster: s.Cluster}
	subscriptions, err := c.Subscriptions(ctx, where)
	if err != nil {
		return nil, err
	}
	groups, err := c.OperatorGroups(ctx, where)
	var names []string
	for i := range subscriptions {
		names = append(names, subscriptions[i].Namespace)
	}
	for i := range groups {
		names = append(names, groups[i].Namespace)
	}
	return names, err
}

func (r *registry) packages(ctx context.Context, c *client.Client) ([]string, error) {
	all, err := c.SearchPackages(ctx, model.PackageFilter{})
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names, err
}

// channels are those of the package that --package and --catalog name.
func (r *registry) channels(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	value := func(flag string) string {
		if f := c.Flags().Lookup(flag); f != nil {
			return f.Value.String()
		}
		return ""
	}
	name, catalog := value("package"), value("catalog")
	if name == "" || catalog == "" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return r.ask(func(ctx context.Context, c *client.Client) ([]string, error) {
		ref, err := kinds.Catalogs(r.a).Ref(command.Scope{}, catalog)
		if err != nil {
			return nil, err
		}
		p, err := c.Package(ctx, ref, name)
		var names []string
		for _, ch := range p.ChannelList {
			names = append(names, ch.Name)
		}
		return names, err
	}), cobra.ShellCompDirectiveNoFileComp
}

func (r *registry) contexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	f, err := r.a.Contexts()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names := make([]string, len(f.Contexts))
	for i := range f.Contexts {
		names[i] = f.Contexts[i].Name
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// names are the keys of all objects of a kind.
func (r *registry) names(of func(*command.Env) kinds.Kind) source {
	return func(ctx context.Context, c *client.Client) ([]string, error) {
		return listed(ctx, c, of(r.a), command.Scope{}, "")
	}
}

// kind completes the objects of a kind where flags and context look for them, in a phase if one is given.
func (r *registry) kind(name, phase string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return r.ask(func(ctx context.Context, c *client.Client) ([]string, error) {
			k, err := kinds.Find(r.a, name)
			if err != nil {
				return nil, err
			}
			s, err := k.Within(r.a, flagged(cmd))
			if err != nil {
				return nil, err
			}
			return listed(ctx, c, k, s, phase)
		}), cobra.ShellCompDirectiveNoFileComp
	}
}

// listed are the names of a list, as short as the scope allows.
func listed(ctx context.Context, c *client.Client, k kinds.Kind, s command.Scope, phase string) ([]string, error) {
	items, err := k.List(ctx, c, client.Selection{Cluster: s.Cluster, Namespace: s.Namespace, Phase: phase})
	if err != nil {
		return nil, err
	}
	names := make([]string, len(items))
	for i, it := range items {
		names[i] = short(it, s)
	}
	return names, nil
}

func short(it printer.Item, s command.Scope) string {
	_, key, _ := strings.Cut(it.Name, "/")
	if s.Cluster != "" && s.Namespace != "" {
		return strings.TrimPrefix(key, s.Cluster+"/"+s.Namespace+"/")
	}
	return key
}

// targets completes KIND NAME... and KIND/NAME.
func (r *registry) targets(c *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	kind, _, slash := strings.Cut(toComplete, "/")
	if len(args) > 0 && !strings.Contains(args[0], "/") {
		kind, slash = args[0], false
	} else if !slash {
		var all []string
		for _, k := range kinds.All(r.a) {
			all = append(all, k.Names...)
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	}
	k, err := kinds.Find(r.a, kind)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	s, err := k.Within(r.a, flagged(c))
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names := r.ask(func(ctx context.Context, c *client.Client) ([]string, error) { return listed(ctx, c, k, s, "") })
	if slash {
		for i := range names {
			names[i] = kind + "/" + names[i]
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// flagged is the scope that the flags of a line say.
func flagged(c *cobra.Command) command.Scope {
	var s command.Scope
	for flag, into := range map[string]*string{"cluster": &s.Cluster, "namespace": &s.Namespace} {
		if f := c.Flags().Lookup(flag); f != nil && f.Value.Type() == "string" {
			*into = f.Value.String()
		}
	}
	return s
}
