package kinds

import (
	"context"
	"strings"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// subjectRoles is the subject of the events of all roles and bindings.
const subjectRoles = "roles"

func roles(a *command.Env) Kind {
	show := func(r model.AccessRole) printer.Item {
		age, origin := printer.None, "defined"
		if r.CreatedAt != nil {
			age = printer.Age(a.Now(), *r.CreatedAt)
		}
		if r.BuiltIn {
			origin = "built in"
		}
		return printer.Item{
			Name: "role/" + r.Name, Value: r, Subject: subjectRoles, Stream: events.KindAccess,
			Cells: []any{r.Name, origin, printer.Or(r.Description, rulesOfRole(r.Spec.Rules)), age},
			Describe: func(p *printer.Page) {
				p.Line("Name", r.Name)
				p.Line("Origin", origin)
				p.Line("Description", r.Description)
				p.Section("Allows")
				for _, x := range r.Spec.Rules {
					p.Row(strings.Join(x.Verbs, ", "), strings.Join(x.Resources, ", "))
				}
			},
		}
	}
	return Kind{
		Document: olm.KindRole, Names: []string{"role", "roles"},
		columns: []printer.Column{{Name: "Name"}, {Name: "Origin"}, {Name: "Allows", Cut: 8}, {Name: "Age", Cut: 9}},
		List: func(ctx context.Context, c *client.Client, _ client.Selection) ([]printer.Item, error) {
			list, err := c.Roles(ctx)
			return printer.Items(list, err, show)
		},
		Get: func(ctx context.Context, c *client.Client, r client.Ref) (printer.Item, error) {
			v, err := c.Role(ctx, r.Name)
			return printer.OneItem(v, err, show)
		},
		Remove: func(ctx context.Context, c *client.Client, r client.Ref) (model.Removed, error) {
			return c.DeleteRole(ctx, r.Name)
		},
	}
}

func rulesOfRole(rules []model.AccessRule) string {
	parts := make([]string, len(rules))
	for i, r := range rules {
		parts[i] = strings.Join(r.Verbs, "|") + " " + strings.Join(r.Resources, "|")
	}
	return strings.Join(parts, ", ")
}

func roleBindings(a *command.Env) Kind {
	show := func(b model.RoleBinding) printer.Item {
		subjects := make([]string, len(b.Spec.Subjects))
		for i, s := range b.Spec.Subjects {
			subjects[i] = s.Kind + "/" + s.Name
		}
		return printer.Item{
			Name: "rolebinding/" + b.Name, Value: b, Subject: subjectRoles, Stream: events.KindAccess,
			Cells: []any{
				b.Name, b.Spec.Role, strings.Join(subjects, ", "), ScopeText(b.Spec.Scope),
				printer.Age(a.Now(), b.CreatedAt),
			},
			Describe: func(p *printer.Page) {
				p.Line("Name", b.Name)
				p.Line("Role", b.Spec.Role)
				p.Line("Where", ScopeText(b.Spec.Scope))
				p.Section("Subjects")
				for _, s := range b.Spec.Subjects {
					p.Row(s.Kind, s.Name)
				}
				p.When("Created", b.CreatedAt)
				p.When("Changed", b.UpdatedAt)
			},
		}
	}
	return Kind{
		Document: olm.KindRoleBinding, Names: []string{"rolebinding", "rolebindings"},
		columns: []printer.Column{
			{Name: "Name"}, {Name: "Role"}, {Name: "Subjects", Cut: 8}, {Name: "Where", Cut: 7}, {Name: "Age", Cut: 9},
		},
		List: func(ctx context.Context, c *client.Client, _ client.Selection) ([]printer.Item, error) {
			list, err := c.RoleBindings(ctx)
			return printer.Items(list, err, show)
		},
		Get: func(ctx context.Context, c *client.Client, r client.Ref) (printer.Item, error) {
			v, err := c.RoleBinding(ctx, r.Name)
			return printer.OneItem(v, err, show)
		},
		Remove: func(ctx context.Context, c *client.Client, r client.Ref) (model.Removed, error) {
			return c.DeleteRoleBinding(ctx, r.Name)
		},
	}
}

// ScopeText is a scope on one line.
func ScopeText(s model.AccessScope) string {
	return printer.Or(selectorText(model.PolicySelector{
		Clusters: s.Clusters, ClusterLabels: s.ClusterLabels, Namespaces: s.Namespaces, Catalogs: s.Catalogs,
	}), "everywhere")
}
