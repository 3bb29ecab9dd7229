package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// marking is what label and annotate do.
type marking struct {
	command.Scope

	field     string // labels or annotations
	one       string
	done      string
	overwrite bool
}

// LabelCommand is chandler label.
func LabelCommand(a *command.Env) *cobra.Command {
	return markCommand(a, &marking{field: "labels", one: "label", done: "labeled"}, cobra.Command{
		Use:   "label (KIND NAME... | KIND/NAME...) KEY=VALUE|KEY-...",
		Short: "Set or remove labels",
		Long: `Sets labels (KEY=VALUE) and removes them (KEY-); others stay. A label that has another value is changed with
--overwrite only. Clusters, catalogs, subscriptions, operator groups, install plans and approval policies have
labels.`,
		Example: `  chandler label cluster east-1 stage=production
  chandler label sub/east-1/ports/tidegauge team=harbour trial- --overwrite`,
	})
}

// AnnotateCommand is chandler annotate.
func AnnotateCommand(a *command.Env) *cobra.Command {
	return markCommand(a, &marking{field: "annotations", one: "annotation", done: "annotated"}, cobra.Command{
		Use:   "annotate (KIND NAME... | KIND/NAME...) KEY=VALUE|KEY-...",
		Short: "Set or remove annotations",
		Long: `Sets annotations (KEY=VALUE) and removes them (KEY-); others stay. An annotation that has another value is changed
with --overwrite only. Catalogs, subscriptions, operator groups, install plans and approval policies have
annotations.`,
		Example: "  chandler annotate sub/east-1/ports/tidegauge example.com/ticket=OPS-7",
	})
}

func markCommand(a *command.Env, m *marking, c cobra.Command) *cobra.Command {
	c.Args = command.RequireArgs(command.Unlimited)
	c.RunE = func(cmd *cobra.Command, args []string) error { return m.run(cmd.Context(), a, args) }
	m.Scope.Flags(&c)
	c.Flags().BoolVar(&m.overwrite, "overwrite", false, "change values that there are")
	return &c
}

func (m *marking) run(ctx context.Context, a *command.Env, args []string) error {
	at := slices.IndexFunc(args, func(s string) bool {
		return strings.Contains(s, "=") || strings.HasSuffix(s, "-")
	})
	if at < 1 {
		return command.Usagef("want an object, and then KEY=VALUE or KEY- of its %s", m.field)
	}
	changes, err := command.Changes(m.one, args[at:])
	if err != nil {
		return err
	}
	targets, err := kinds.ParseTargets(a, m.Scope, args[:at])
	if err != nil {
		return err
	}
	for _, t := range targets {
		if len(t.Refs) == 0 {
			return command.Usagef("missing name of the %s", t.Kind.Singular())
		}
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	var wrong []error
	for _, t := range targets {
		for _, ref := range t.Refs {
			if err := m.mark(ctx, a, c, t.Kind, ref, changes); err != nil {
				wrong = append(wrong, fmt.Errorf("%s/%s: %w", t.Kind.Singular(), ref, err))
			}
		}
	}
	return errors.Join(wrong...)
}

// mark changes one object.
func (m *marking) mark(ctx context.Context, a *command.Env, c *client.Client, k kinds.Kind, ref client.Ref,
	changes map[string]*string,
) error {
	if k.Singular() == kinds.KindCluster && m.field == "labels" {
		return m.markCluster(ctx, a, c, ref, changes)
	}
	if slices.Contains([]string{"role", "rolebinding", "operatorhub", kinds.KindCluster}, k.Singular()) {
		return command.Usagef("%s has no %s", k.One(), m.field)
	}
	name, r, err := changeFields(ctx, c, k, ref, m.field, changes, m.overwrite)
	if err != nil {
		return err
	}
	return m.say(a, name, r.did == unchanged)
}

func (m *marking) say(a *command.Env, name string, same bool) error {
	if same {
		return a.Say("%s not %s: it is so already", name, m.done)
	}
	return a.Say("%s %s", name, m.done)
}

// markCluster changes the labels of a cluster, which the API changes one by one.
func (m *marking) markCluster(ctx context.Context, a *command.Env, c *client.Client, ref client.Ref,
	changes map[string]*string,
) error {
	have, err := c.Cluster(ctx, ref.Name)
	if err != nil {
		return command.OrNoCluster(ctx, c, ref.Name, err)
	}
	if !m.overwrite {
		if err := command.CheckOverwrite(have.Labels, changes); err != nil {
			return err
		}
	}
	same := true
	for key, value := range changes {
		if before, has := have.Labels[key]; has != (value != nil) || has && before != *value {
			same = false
		}
	}
	if !same {
		if _, err := c.ConfigureCluster(ctx, ref.Name, model.ConfigureCluster{Labels: changes}); err != nil {
			return err
		}
	}
	return m.say(a, "cluster/"+ref.Name, same)
}
