package admin

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// QuotaCommand shows and sets what tenants may have and ask for.
func QuotaCommand(a *command.Env) *cobra.Command {
	c := &cobra.Command{Use: "quota", Short: "List and set what tenants may have and ask for"}
	c.AddCommand(quotaListCommand(a), quotaSetCommand(a))
	return c
}

func quotaListCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	c := &cobra.Command{
		Use: "list", Short: "List the quotas of tenants, with what they have", Args: cobra.NoArgs,
		Long: `Lists what each tenant has, of what it may have. The tenant of the installation sees all tenants, others see
themselves. Requests a second and streams are those of the gateway that answers.`,
		Example: "  chandler quota list",
		RunE: a.Run(func(ctx context.Context, c *client.Client, _ []string) error {
			list, err := c.Quotas(ctx)
			return printer.List(a, &o, printer.Table{
				Plural:  "quotas",
				Columns: printer.Columns("Tenant", "Subscriptions", "Catalogs", "Requests/s", "Streams"),
			}, list, err, func(q model.Quota) printer.Item {
				return printer.Item{Name: "quota/" + q.Tenant, Value: q, Cells: []any{
					q.Tenant, usedOf(q.Used.Subscriptions, q.Hard.Subscriptions),
					usedOf(q.Used.Catalogs, q.Hard.Catalogs),
					usedOf(q.Used.RequestsPerSecond, q.Hard.RequestsPerSecond), usedOf(q.Used.Streams, q.Hard.Streams),
				}}
			})
		}),
	}
	o.Flags(c)
	return c
}

// usedOf writes what is used of a bound, as kubectl does of a ResourceQuota.
func usedOf(used int64, hard *int64) string {
	if hard == nil {
		return fmt.Sprintf("%d/unbounded", used)
	}
	return fmt.Sprintf("%d/%d", used, *hard)
}

func quotaSetCommand(a *command.Env) *cobra.Command {
	var subscriptions, catalogs, requests, streams int64
	c := &cobra.Command{
		Use: "set TENANT", Short: "Set what a tenant may have and ask for", Args: command.RequireArgs(1),
		Long: `Replaces the quota of a tenant: what no flag names is not bounded any more. What stands above a lowered bound stays, and
can be changed and deleted. For administrators of the tenant of the installation.`,
		Example: `  chandler quota set acme --subscriptions 500 --catalogs 20
  chandler quota set acme                    # no bounds`,
	}
	f := c.Flags()
	f.Int64Var(&subscriptions, "subscriptions", 0, "at most so many subscriptions")
	f.Int64Var(&catalogs, "catalogs", 0, "at most so many catalogs")
	f.Int64Var(&requests, "requests-per-second", 0, "at most so many requests a second of all its people and programs")
	f.Int64Var(&streams, "streams", 0, "at most so many open event streams")
	c.RunE = a.Run(func(ctx context.Context, cl *client.Client, args []string) error {
		var in model.SetQuota
		for name, to := range map[string]**int64{
			"subscriptions": &in.Hard.Subscriptions, "catalogs": &in.Hard.Catalogs,
			"requests-per-second": &in.Hard.RequestsPerSecond, "streams": &in.Hard.Streams,
		} {
			if f.Changed(name) {
				given, err := f.GetInt64(name)
				if err != nil {
					return err
				}
				*to = &given
			}
		}
		have, err := cl.Quota(ctx, args[0])
		if err != nil {
			return err
		}
		q, err := cl.SetQuota(ctx, args[0], have.Tag(), in)
		if err != nil {
			return err
		}
		return a.Say("quota/%s: subscriptions %s, catalogs %s, requests a second %s, streams %s", q.Tenant,
			usedOf(q.Used.Subscriptions, q.Hard.Subscriptions), usedOf(q.Used.Catalogs, q.Hard.Catalogs),
			usedOf(q.Used.RequestsPerSecond, q.Hard.RequestsPerSecond), usedOf(q.Used.Streams, q.Hard.Streams))
	})
	return c
}
