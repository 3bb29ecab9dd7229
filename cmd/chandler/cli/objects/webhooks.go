package objects

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// applyWebhook shows the secret of a new webhook, which nobody sees again.
func applyWebhook(ctx context.Context, c *client.Client, name string, want model.WebhookSpec) (string, error) {
	have, err := c.Webhook(ctx, name)
	there := !client.IsStatus(err, http.StatusNotFound)
	if err != nil && there {
		return "", err
	}
	now, err := c.SetWebhook(ctx, name, have.Tag(), want)
	switch {
	case err != nil:
		return "", err
	case !there && now.Secret == "": // of a dry run
		return created, nil
	case !there:
		return created + "; its secret, shown this once: " + now.Secret, nil
	case now.Stream == have.Stream && now.Version == have.Version:
		return unchanged, nil
	default:
		return configured, nil
	}
}
