package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/eventtext"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// eventPage is how many events one request asks for.
const eventPage = 500

type eventOptions struct {
	client.EventSelection
	format string
	follow bool
	most   int
}

func (a *app) eventsCommand() *cobra.Command {
	var o eventOptions
	c := &cobra.Command{
		Use:   "events",
		Short: "Tell the event log, a line for each event",
		Long: `Writes a line for each event, oldest first: time, position, subject, and what happened. With
--follow it writes what happens from now on (or after --after), and after a broken connection goes
on where it was. On a terminal long lines go on below; COLUMNS names another width.`,
		Example: `  chandler events --follow
  chandler events --subject east-1/ports/harbor-master
  chandler events --cluster east-1 --type installplan.proposed.v1 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.events(cmd.Context(), o) },
	}
	f := c.Flags()
	f.StringSliceVar(&o.Types, "type", nil, "only events of these types")
	f.StringVar(&o.Subject, "subject", "", "only events of this subject")
	f.StringVar(&o.Stream, "stream", "", "only events of this stream")
	f.StringVar(&o.Cluster, "cluster", "", "only events of this cluster")
	f.StringVar(&o.After, "after", "", "only events after this position")
	f.IntVar(&o.most, "limit", 0, "at most so many (0 is all)")
	f.BoolVar(&o.follow, "follow", false, "write what happens from now on, until Ctrl-C")
	f.StringVarP(&o.format, "output", "o", "", "json writes each event whole, one to a line")
	return c
}

func (a *app) events(ctx context.Context, o eventOptions) error {
	if o.format != formatTable && o.format != formatJSON {
		return usagef("output format %q: events are written as lines, or as json", o.format)
	}
	if o.most < 0 {
		return usagef("--limit %d: want 0, which is all, or more", o.most)
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	if o.follow {
		lost := func(err error) {
			// A terminal that is gone ends the command with the next event.
			_, _ = fmt.Fprintln(a.Err, "connection lost, trying again:", err)
		}
		return c.Follow(ctx, o.EventSelection, func(e model.Event) error { return a.writeEvent(o.format, e) }, lost)
	}
	events, err := allEvents(ctx, c, o.EventSelection, o.most)
	if err != nil {
		return err
	}
	if len(events) == 0 && o.Cluster != "" { // of one that was removed there are events
		return isCluster(ctx, c, o.Cluster)
	}
	for _, e := range events {
		if err := a.writeEvent(o.format, e); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) writeEvent(format string, e model.Event) error {
	if format == formatJSON {
		return json.NewEncoder(a.Out).Encode(e)
	}
	return eventtext.Line(a.Out, e, a.Columns)
}

// allEvents reads page after page; most bounds the result unless it is 0.
func allEvents(ctx context.Context, c *client.Client, s client.EventSelection, most int) ([]model.Event, error) {
	var found []model.Event
	s.Limit = eventPage
	for {
		page, err := c.Events(ctx, s)
		if err != nil {
			return nil, err
		}
		found = append(found, page.Items...)
		if most > 0 && len(found) >= most {
			return found[:most], nil
		}
		if page.Done || page.Next == s.After {
			return found, nil
		}
		s.After = page.Next
	}
}
