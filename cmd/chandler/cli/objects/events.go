package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/eventtext"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func describeEvents(ctx context.Context, c *client.Client, p *printer.Page, it printer.Item) error {
	list, err := allEvents(ctx, c, client.EventSelection{Subject: it.Subject}, 0)
	list = slices.DeleteFunc(list, func(e model.Event) bool {
		return !strings.HasPrefix(
			e.Stream, string(it.Stream)+":")
	})
	if err != nil || len(list) == 0 {
		return err
	}
	p.Section("Events")
	if n := len(list) - describedEvents; n > 0 {
		p.Row(fmt.Sprintf("(%d older ones: chandler events --subject %s)", n, it.Subject))
		list = list[n:]
	}
	for _, e := range list {
		p.Row(p.Age(e.Time), e.Type, eventtext.Sentence(e))
	}
	return nil
}

// eventPage is how many events one request asks for.
const eventPage = 500

type eventOptions struct {
	client.EventSelection
	format string
	follow bool
	most   int
}

// EventsCommand is chandler events.
func EventsCommand(a *command.Env) *cobra.Command {
	var o eventOptions
	c := &cobra.Command{
		Use:   "events",
		Short: "Show the event log, a line for each event",
		Long: `Writes a line for each event, oldest first: time, position, subject, and what happened. With --follow it writes new
events (or those after --after) as they happen, and continues after a broken connection. On a terminal long lines
are wrapped; COLUMNS sets another width.`,
		Example: `  chandler events --follow
  chandler events --subject east-1/ports/harbor-master
  chandler events --cluster east-1 --type installplan.proposed.v1 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return listEvents(cmd.Context(), a, o) },
	}
	f := c.Flags()
	f.StringSliceVar(&o.Types, "type", nil, "only events of these types")
	f.StringVar(&o.Subject, "subject", "", "only events of this subject")
	f.StringVar(&o.Stream, "stream", "", "only events of this stream")
	f.StringVar(&o.Cluster, "cluster", "", "only events of this cluster")
	f.StringVar(&o.After, "after", "", "only events after this position")
	f.IntVar(&o.most, "limit", 0, "at most so many (0 is all)")
	f.BoolVar(&o.follow, "follow", false, "write new events as they happen, until Ctrl-C")
	f.StringVarP(&o.format, "output", "o", "", "json writes each event in full, one to a line")
	return c
}

func listEvents(ctx context.Context, a *command.Env, o eventOptions) error {
	if o.format != printer.FormatTable && o.format != printer.FormatJSON {
		return command.Usagef("output format %q: events are written as lines, or as json", o.format)
	}
	if o.most < 0 {
		return command.Usagef("--limit %d: want 0, which is all, or more", o.most)
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	if o.follow {
		lost := func(err error) {
			// A terminal that is gone ends the command with the next event.
			_, _ = fmt.Fprintln(a.Err, "connection lost, trying again:", err)
		}
		return c.Follow(ctx, o.EventSelection, func(e model.Event) error { return writeEvent(a, o.format, e) }, lost)
	}
	events, err := allEvents(ctx, c, o.EventSelection, o.most)
	if err != nil {
		return err
	}
	if len(events) == 0 && o.Cluster != "" { // of one that was removed there are events
		return command.CheckCluster(ctx, c, o.Cluster)
	}
	for _, e := range events {
		if err := writeEvent(a, o.format, e); err != nil {
			return err
		}
	}
	return nil
}

func writeEvent(a *command.Env, format string, e model.Event) error {
	if format == printer.FormatJSON {
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
