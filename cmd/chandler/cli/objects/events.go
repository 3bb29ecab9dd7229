package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/eventtext"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func describeEvents(ctx context.Context, c *client.Client, p *printer.Page, it printer.Item) error {
	list, err := AllEvents(ctx, c, client.EventSelection{Subject: it.Subject}, 0)
	list = slices.DeleteFunc(list, func(e model.Event) bool { return !ofStream(e, it.Stream) })
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

// ofStream says whether an event is of a stream of this kind; every one is where none is named.
func ofStream(e model.Event, kind events.Kind) bool {
	return kind == "" || strings.HasPrefix(e.Stream, string(kind)+":")
}

// eventPage is how many events one request asks for.
const eventPage = 500

type eventOptions struct {
	client.EventSelection
	format string
	follow bool
	most   int
	object string      // kind/name
	kind   events.Kind // of the streams of the object
}

// about narrows the events to those of the object of --for. One that is gone has events, too.
func (o *eventOptions) about(ctx context.Context, a *command.Env, c *client.Client) error {
	if o.object == "" {
		return nil
	}
	if o.Subject != "" {
		return command.Usagef("either --for or --subject, not both")
	}
	t, err := kinds.ParseTarget(a, command.Scope{Cluster: o.Cluster}, []string{o.object})
	switch {
	case err != nil:
		return err
	case len(t.Refs) != 1:
		return command.Usagef("--for %s: want KIND/NAME", o.object)
	}
	it, err := t.Kind.Get(ctx, c, t.Refs[0])
	switch {
	case client.IsStatus(err, http.StatusNotFound):
		o.Subject = t.Refs[0].String()
	case err != nil:
		return err
	case it.Subject == "":
		return command.Usagef("%s has no events of its own", t.Kind.One())
	default:
		o.Subject, o.kind = it.Subject, it.Stream
	}
	return nil
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
  chandler events --for sub/east-1/ports/harbor-master
  chandler events --since 24h --actor person-4tz2kq7mw3xa
  chandler events --cluster east-1 --type installplan.proposed.v1 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return listEvents(cmd.Context(), a, o) },
	}
	f := c.Flags()
	f.StringSliceVar(&o.Types, "type", nil, "only events of these types")
	f.StringVar(&o.object, "for", "", "only events of this object: KIND/NAME, as kubectl events has it")
	f.StringVar(&o.Subject, "subject", "", "only events of this subject")
	f.StringVar(&o.Stream, "stream", "", "only events of this stream")
	f.StringVar(&o.Cluster, "cluster", "", "only events of this cluster")
	f.StringVar(&o.Actor, "actor", "", "only events that this actor asked for, or asked for on behalf of people")
	f.StringVar(&o.Since, "since", "", "only events recorded since a time (RFC 3339), or so long ago, such as 90m or 24h")
	f.StringVar(&o.Until, "until", "", "only events recorded before a time, or so long ago; not with --follow")
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
	if o.follow && o.Until != "" {
		return command.Usagef("either --follow or --until, not both")
	}
	// Pages that are read one after the other begin and end at the same time.
	for _, t := range []*string{&o.Since, &o.Until} {
		if ago, err := time.ParseDuration(*t); err == nil && ago >= 0 {
			*t = a.Now().Add(-ago).UTC().Format(time.RFC3339Nano)
		}
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	if err := o.about(ctx, a, c); err != nil {
		return err
	}
	if o.follow {
		lost := func(err error) {
			// A terminal that is gone ends the command with the next event.
			_, _ = fmt.Fprintln(a.Err, "connection lost, trying again:", err)
		}
		return c.Follow(ctx, o.EventSelection, o.write(a), lost)
	}
	found, err := AllEvents(ctx, c, o.EventSelection, o.most)
	if err != nil {
		return err
	}
	if len(found) == 0 && o.Cluster != "" { // of one that was removed there are events
		return command.CheckCluster(ctx, c, o.Cluster)
	}
	write := o.write(a)
	for _, e := range found {
		if err := write(e); err != nil {
			return err
		}
	}
	return nil
}

// write writes an event that is wanted.
func (o *eventOptions) write(a *command.Env) func(model.Event) error {
	return func(e model.Event) error {
		switch {
		case !ofStream(e, o.kind):
			return nil
		case o.format == printer.FormatJSON:
			return json.NewEncoder(a.Out).Encode(e)
		}
		return eventtext.Line(a.Out, e, a.Columns)
	}
}

// AllEvents reads page after page; most bounds the result unless it is 0.
func AllEvents(ctx context.Context, c *client.Client, s client.EventSelection, most int) ([]model.Event, error) {
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
