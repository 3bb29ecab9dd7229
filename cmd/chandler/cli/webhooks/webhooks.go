// Package webhooks has the commands on webhooks beyond get, describe, apply and delete.
package webhooks

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Command tests, replays and rotates webhooks, and lists what they send.
func Command(a *command.Env) *cobra.Command {
	c := &cobra.Command{
		Use: "webhook", Short: "Test and replay webhooks, list what they send, and give them another secret",
		Annotations: map[string]string{command.ListedBy: "chandler get webhooks"},
		Long: `A webhook sends events to an address. It is made by chandler apply of a document of kind Webhook, and shown and
deleted by chandler get, describe and delete webhook.`,
	}
	c.AddCommand(testCommand(a), replayCommand(a), deliveriesCommand(a), rotateCommand(a))
	return c
}

func testCommand(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "test NAME", Short: "Send a test event now, and say what became of it",
		Long: "Sends an event of type webhook.test once, and says what the receiver answered. The exit status is 1 " +
			"if it was not taken.",
		Example: "  chandler webhook test portal", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			d, err := c.TestWebhook(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if d.State != "Delivered" {
				return fmt.Errorf("webhook/%s was not delivered: %s", args[0], d.Error)
			}
			return a.Say("webhook/%s delivered: it answered %d in %s", args[0], d.Status, took(d))
		},
	}
}

func took(d model.WebhookDelivery) time.Duration {
	return (time.Duration(d.TookMicros) * time.Microsecond).Round(time.Millisecond)
}

func replayCommand(a *command.Env) *cobra.Command {
	var after string
	c := &cobra.Command{
		Use: "replay NAME --after POSITION", Short: "Send the events behind a position again",
		Long: `Sends the events behind a position of the log again, in order. Each has the webhook-id that it had before, so a
receiver that drops what it has seen has to be told. chandler events shows positions; 1-0 is the beginning.`,
		Example: "  chandler webhook replay portal --after 1-4711", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			if _, err := c.ReplayWebhook(cmd.Context(), args[0], after); err != nil {
				return err
			}
			return a.Say("webhook/%s sends the events after %s again", args[0], after)
		},
	}
	c.Flags().StringVar(&after, "after", "", "position behind which to begin")
	_ = c.MarkFlagRequired("after") // it was defined in the line before
	return c
}

func deliveriesCommand(a *command.Env) *cobra.Command {
	var state string
	var o printer.Output
	c := &cobra.Command{
		Use: "deliveries NAME", Short: "List what a webhook sends and has sent, newest first",
		Long: "Lists deliveries of 30 days, at most the newest 10,000 that have ended. Failed ones were given up after\n" +
			"three days; Withdrawn ones are of events that the owner of the webhook may not see any more.",
		Example: "  chandler webhook deliveries portal --state Pending", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			list, err := c.WebhookDeliveries(cmd.Context(), args[0], state)
			return printer.List(a, &o, printer.Table{
				Plural: "deliveries",
				Columns: []printer.Column{
					{Name: "Age"},
					{Name: "Type"},
					{Name: "State"},
					{Name: "Tries"},
					{Name: "Answer"},
					{Name: "Subject", Wide: true},
					{Name: "Event", Wide: true},
					{Name: "Error", Wide: true},
					{Name: "ID", Wide: true},
				},
			}, list, err, func(d model.WebhookDelivery) printer.Item {
				answer := any(printer.None)
				if d.Status > 0 {
					answer = d.Status
				}
				return printer.Item{Name: "webhookdelivery/" + d.ID, Value: d, Cells: []any{
					printer.Age(a.Now(), d.CreatedAt), d.Type, d.State, d.Attempts, answer, d.Subject, d.Event, d.Error,
					d.ID,
				}}
			})
		},
	}
	c.Flags().StringVar(&state, "state", "", "only those that are Pending, Delivered, Failed or Withdrawn")
	o.Flags(c)
	return c
}

func rotateCommand(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "rotate NAME", Short: "Give a webhook another secret, which is shown once",
		Long:    "Gives a webhook another secret. The one before signs beside it for a day.",
		Example: "  chandler webhook rotate portal", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			w, err := c.RotateWebhook(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.Say("secret: %s", w.Secret)
		},
	}
}
