package kinds

import (
	"context"
	"strconv"
	"strings"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func webhooks(a *command.Env) Kind {
	show := func(w model.Webhook) printer.Item {
		types := printer.Or(strings.Join(w.Spec.Types, ", "), "<all>")
		state := w.State
		if w.Reason != "" {
			state += " (" + w.Reason + ")"
		}
		return printer.Item{
			Name: "webhook/" + w.Name, Value: w, Subject: w.Name, Stream: events.KindWebhook,
			Cells: []any{
				w.Name, w.Host, state, w.Pending, printer.Age(a.Now(), w.CreatedAt), w.Spec.Target.Type, types,
				ScopeText(w.Spec.Scope), w.Owner,
			},
			Describe: func(p *printer.Page) { describeWebhook(p, w, state, types) },
		}
	}
	return Kind{
		Document: olm.KindWebhook, Names: []string{"webhook", "webhooks", "wh"},
		columns: []printer.Column{
			{Name: "Name"},
			{Name: "Host"},
			{Name: "State"},
			{Name: "Pending"},
			{Name: "Age"},
			{Name: "Target", Wide: true},
			{Name: "Types", Wide: true},
			{Name: "Where", Wide: true},
			{Name: "Owner", Wide: true},
		},
		List: func(ctx context.Context, c *client.Client, _ client.Selection) ([]printer.Item, error) {
			list, err := c.Webhooks(ctx)
			return printer.Items(list, err, show)
		},
		Get: func(ctx context.Context, c *client.Client, r client.Ref) (printer.Item, error) {
			v, err := c.Webhook(ctx, r.Name)
			return printer.OneItem(v, err, show)
		},
		Remove: func(ctx context.Context, c *client.Client, r client.Ref) (model.Removed, error) {
			return c.DeleteWebhook(ctx, r.Name)
		},
	}
}

func describeWebhook(p *printer.Page, w model.Webhook, state, types string) {
	p.Line("Name", w.Name)
	p.Line("Host", w.Host)
	p.Line("State", state)
	p.Line("Target", strings.TrimSpace(w.Spec.Target.Type+" "+w.Spec.Target.Mode))
	p.Line("Types", types)
	p.Line("Where", ScopeText(w.Spec.Scope))
	p.Line("Sends what", w.Owner+" may see")
	p.Line("Pending", strconv.FormatInt(w.Pending, 10))
	p.Line("At", w.At)
	if w.LastSuccess != nil {
		p.When("Taken last", *w.LastSuccess)
	}
	p.When("Created", w.CreatedAt)
	p.When("Changed", w.UpdatedAt)
}
