package client

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/chandler-fleet/chandler/libs/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Follow calls each for every event after s.After as it comes, and opens the stream again where it
// broke off, until ctx ends, each fails or the gateway refuses. lost, when not nil, is told of every break.
func (c *Client) Follow(ctx context.Context, s EventSelection, each func(model.Event) error, lost func(error)) error {
	from := client.StreamEventsParams{
		Type: s.Types, Subject: s.Subject, Stream: s.Stream, Cluster: s.Cluster, After: s.After,
	}
	return c.shown(c.api.FollowMessages(ctx, from, func(m client.Message) error {
		if len(m.Data) == 0 {
			return nil
		}
		var e model.Event
		if err := json.Unmarshal(m.Data, &e); err != nil {
			return fmt.Errorf("event %s of the stream is not what this version expects: %w", m.Position, err)
		}
		if e.Type == "" {
			return nil
		}
		return each(e)
	}, func(err error) {
		if lost != nil {
			lost(c.shown(err))
		}
	}))
}
