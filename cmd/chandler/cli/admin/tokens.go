package admin

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TokenCommand makes and revokes the tokens that settings name. A secret is shown once, on standard output.
func TokenCommand(a *command.Env) *cobra.Command {
	c := &cobra.Command{Use: "token", Short: "Create, list, rotate and revoke tokens"}
	c.AddCommand(tokenAddCommand(a), tokenListCommand(a), tokenGetCommand(a), tokenRotateCommand(a),
		tokenRevokeCommand(a))
	return c
}

func tokenAddCommand(a *command.Env) *cobra.Command {
	var role, actor string
	var program bool
	var expires time.Duration
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Create a token; it is shown once",
		Long: `Creates a token for a person or a program. The name is only for display and is not recorded in events: they hold the
actor id. Each token gets a new actor, unless --actor names the actor of another token of the same person.`,
		Example: `  chandler token add "Ingrid, laptop" --role admin
  chandler token add "Ingrid, phone" --role viewer --actor person-4tz2kq7mw3xa
  chandler token add portal --service-account --role none`,
		Args: command.RequireArgs(1),
		RunE: a.Run(func(ctx context.Context, c *client.Client, args []string) error {
			in := model.AddToken{Name: args[0], Role: model.Role(role), Actor: actor}
			in.EndsAt = endsIn(a, expires)
			if program {
				in.Kind = access.KindServiceAccount
			}
			t, err := c.AddToken(ctx, in)
			if err != nil {
				return err
			}
			return a.Say("id: %s\nactor: %s\nends: %s\ntoken: %s", t.ID, t.Actor, endOf(t.Token), t.Secret)
		}),
	}
	c.Flags().BoolVar(&program, "service-account", false, "the token of a program, which role bindings name as a ServiceAccount")
	c.Flags().StringVar(&role, "role", string(model.RoleViewer), "admin: everything; viewer: reads; none: what role bindings give to the actor")
	c.Flags().StringVar(&actor, "actor", "", "actor of another token of the same person")
	c.Flags().DurationVar(&expires, "expires", 0, "how long it is good, such as 720h; by default 90 days")
	return c
}

// endsIn is when a token ends that is good for so long; nil is for the gateway to say.
func endsIn(a *command.Env, life time.Duration) *time.Time {
	if life == 0 {
		return nil
	}
	end := a.Now().Add(life).UTC()
	return &end
}

// endOf is when a token ends.
func endOf(t model.Token) string {
	if t.EndsAt == nil {
		return "never"
	}
	return t.EndsAt.UTC().Format(time.RFC3339)
}

func tokenListCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	c := &cobra.Command{
		Use: "list", Short: "List tokens, revoked ones included", Args: cobra.NoArgs,
		Long: "Lists tokens by name, with the actor that events record for them, and when each was used last, to five\n" +
			"minutes. -o wide also shows the kind, the age and the end of a secret before. Secrets are never shown.",
		Example: "  chandler token list",
		RunE: a.Run(func(ctx context.Context, c *client.Client, _ []string) error {
			list, err := c.Tokens(ctx)
			return printer.List(a, &o, tokenTable(), list, err, func(t model.Token) printer.Item {
				return tokenItem(a, t)
			})
		}),
	}
	o.Flags(c)
	return c
}

func tokenTable() printer.Table {
	columns := printer.Columns("ID", "Name", "Role", "Actor", "Ends", "Used", "State", "Kind", "Age", "Previous")
	for i := range columns {
		columns[i].Wide = i > 5 //nolint:mnd // what fits 80 columns comes first
	}
	return printer.Table{Plural: "tokens", Columns: columns}
}

// tokenItem shows a token; Ends is how long it is good still, as its time stands in -o json.
func tokenItem(a *command.Env, t model.Token) printer.Item {
	ends, state := "never", "Active"
	switch {
	case t.Ended(a.Now()):
		ends, state = "ended", "Ended"
	case t.EndsAt != nil:
		ends = "in " + printer.Age(*t.EndsAt, a.Now())
	}
	used, previous := printer.None, printer.None
	if t.UsedAt != nil {
		used = printer.Age(a.Now(), *t.UsedAt) + " ago"
	}
	if t.PreviousEndsAt != nil && t.PreviousEndsAt.After(a.Now()) {
		previous = "good for " + printer.Age(*t.PreviousEndsAt, a.Now())
	}
	return printer.Item{Name: "token/" + t.ID, Value: t, Cells: []any{
		t.ID, printer.Or(t.Name, printer.None), string(t.Role), t.Actor, ends, used, state, t.Kind,
		printer.Age(a.Now(), t.CreatedAt), previous,
	}}
}

func tokenGetCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	c := &cobra.Command{
		Use: "get NAME", Short: "Show a token, with when it was used last", Args: command.RequireArgs(1),
		Long:    "Shows the token of that id or name, as chandler token list does.",
		Example: "  chandler token get portal -o yaml",
		RunE: a.Run(func(ctx context.Context, c *client.Client, args []string) error {
			t, err := tokenNamed(ctx, c, a, args[0])
			item, err := printer.OneItem(t, err, func(t model.Token) printer.Item { return tokenItem(a, t) })
			if err != nil {
				return err
			}
			return o.Show(a, tokenTable(), []printer.Item{item}, true)
		}),
	}
	o.Flags(c)
	return c
}

// tokenNamed finds a token by its id or its name. Of several of one name that has to be the only one that is good.
func tokenNamed(ctx context.Context, c *client.Client, a *command.Env, name string) (model.Token, error) {
	list, err := c.Tokens(ctx)
	if err != nil {
		return model.Token{}, err
	}
	var named, good []model.Token
	for _, t := range list {
		switch {
		case t.ID == name:
			return t, nil
		case t.Name == name && t.Ended(a.Now()):
			named = append(named, t)
		case t.Name == name:
			good = append(good, t)
		}
	}
	if len(good) == 0 {
		good = named
	}
	switch len(good) {
	case 1:
		return good[0], nil
	case 0:
		return model.Token{}, errs.New(errs.NotFound, "there is no token %q: see chandler token list", name)
	}
	ids := make([]string, len(good))
	for i, t := range good {
		ids[i] = t.ID
	}
	return model.Token{}, errs.New(errs.Invalid, "%d tokens are named %q: give the id of one, %s", len(good), name,
		strings.Join(ids, " or "))
}

// defaultOverlap is how long the secret before a rotation is good, as the API has it, too.
const defaultOverlap = time.Hour

func tokenRotateCommand(a *command.Env) *cobra.Command {
	var overlap, expires time.Duration
	c := &cobra.Command{
		Use: "rotate NAME", Short: "Give a token another secret; it is shown once", Args: command.RequireArgs(1),
		Long: `Gives the token of that id or name another secret and another end. The secret before is good for the overlap still, so
that programs can be given the new one; --overlap 0 refuses it at once. A secret of an earlier rotation is refused at
once.`,
		Example: `  chandler token rotate portal
  chandler token rotate portal --overlap 24h --expires 720h`,
		RunE: a.Run(func(ctx context.Context, c *client.Client, args []string) error {
			if overlap < 0 || overlap%time.Second != 0 {
				return command.Usagef("--overlap %s: give whole seconds, such as 1h", overlap)
			}
			t, err := tokenNamed(ctx, c, a, args[0])
			if err != nil {
				return err
			}
			seconds := int(overlap / time.Second)
			made, err := c.RotateToken(ctx, t.ID,
				model.RotateToken{OverlapSeconds: &seconds, EndsAt: endsIn(a, expires)})
			if err != nil {
				return err
			}
			return a.Say("id: %s\nactor: %s\nends: %s\nprevious secret ends: %s\ntoken: %s", made.ID, made.Actor,
				endOf(made.Token), made.PreviousEndsAt.UTC().Format(time.RFC3339), made.Secret)
		}),
	}
	c.Flags().DurationVar(&overlap, "overlap", defaultOverlap, "how long the secret before is good still, at most 168h")
	c.Flags().DurationVar(&expires, "expires", 0, "how long the token is good, such as 720h; by default 90 days")
	return c
}

func tokenRevokeCommand(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME", Short: "Revoke a token", Args: command.RequireArgs(1),
		Long: "Revokes the token of that id or name for good, with the secret before its rotation. The last token of an\n" +
			"administrator cannot be revoked.",
		Example: "  chandler token revoke 0b0e2f5c-5d1c-4f6e-9a55-8f0c9d6f1e21",
		RunE: a.Run(func(ctx context.Context, c *client.Client, args []string) error {
			t, err := tokenNamed(ctx, c, a, args[0])
			if err != nil {
				return err
			}
			if err := c.RevokeToken(ctx, t.ID); err != nil {
				return err
			}
			return a.Say("token/%s revoked", t.ID)
		}),
	}
}
