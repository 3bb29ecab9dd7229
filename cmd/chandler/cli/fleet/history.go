package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/objects"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/eventtext"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// happened is one line of a history.
type happened struct {
	Time    time.Time `json:"time"`
	Rollout int       `json:"rollout,omitempty"`
	Actor   string    `json:"actor,omitempty"` // of a person or a program; the fleet controller has none
	Via     string    `json:"via,omitempty"`
	Type    string    `json:"type"`
	Text    string    `json:"text"`
	// Clusters are those of which the same happened in a row.
	Clusters []string `json:"clusters,omitempty"`
}

func historyCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	c := &cobra.Command{
		Use: "history NAME", Short: "Say what happened to a fleet subscription and its rollouts",
		Long: `Lists what happened to a fleet subscription and its rollouts, oldest first: when, who asked for it, and what it was. The
fleet controller has no name. Of clusters to which the same happened in a row there is one line; -o json or yaml names
all of them. A fleet subscription that is deleted has a history, too.`,
		Example: "  chandler fleet history gauges", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			list, err := history(cmd.Context(), c, args[0])
			return printer.List(a, &o, printer.Table{
				Plural:  "events",
				Columns: []printer.Column{{Name: "Time"}, {Name: "Rollout", Cut: 1}, {Name: "Who"}, {Name: "What"}},
			}, list, err, func(h happened) printer.Item {
				number, text := printer.None, h.Text
				if h.Rollout > 0 {
					number = fmt.Sprint(h.Rollout)
				}
				if len(h.Clusters) > 1 {
					text += ": " + someNames(h.Clusters)
				}
				return printer.Item{Value: h, Name: h.Type, Cells: []any{
					h.Time.UTC().Format(time.RFC3339), number, printer.Or(h.Actor, printer.None), text,
				}}
			})
		},
	}
	o.Flags(c)
	return c
}

func history(ctx context.Context, c *client.Client, name string) ([]happened, error) {
	all, err := eventsOf(ctx, c, events.KindFleetSubscription, name)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, &client.Problem{
			Status: http.StatusNotFound, Detail: fmt.Sprintf("no fleet subscription %q exists", name),
		}
	}
	rollouts, err := c.Rollouts(ctx, name, 0)
	if err != nil {
		return nil, err
	}
	for _, r := range rollouts {
		of, err := eventsOf(ctx, c, events.KindRollout, fleetmodel.RolloutSubject(name, r.Number))
		if err != nil {
			return nil, err
		}
		all = append(all, of...)
	}
	slices.SortStableFunc(all, func(a, b model.Event) int { return a.Recorded.Compare(b.Recorded) })
	return told(name, all), nil
}

// eventsOf are the events of the streams of a kind with a subject: something else may have that subject, too.
func eventsOf(ctx context.Context, c *client.Client, kind events.Kind, subject string) ([]model.Event, error) {
	all, err := objects.AllEvents(ctx, c, client.EventSelection{Subject: subject}, 0)
	return slices.DeleteFunc(all, func(e model.Event) bool {
		return !strings.HasPrefix(e.Stream, string(kind)+":")
	}), err
}

// told puts events into words, and those in a row together that differ in their cluster alone.
func told(name string, all []model.Event) (out []happened) {
	waves := map[int][]events.RolloutWave{}
	same := "" // what the last line says of any cluster
	for _, e := range all {
		var about struct {
			Cluster string               `json:"cluster"`
			Wave    *int                 `json:"wave"`
			Waves   []events.RolloutWave `json:"waves"`
		}
		_ = json.Unmarshal(e.Data, &about) // what cannot be read has nothing to be named by
		h := happened{
			Time: e.Time, Rollout: number(name, e.Subject), Actor: e.Actor, Via: e.Via, Type: e.Type,
			Text: eventtext.Sentence(e),
		}
		if len(about.Waves) > 0 {
			waves[h.Rollout] = about.Waves
		}
		if of := waves[h.Rollout]; about.Wave != nil && *about.Wave < len(of) { // people know waves by their names
			h.Text = strings.Replace(h.Text, fmt.Sprintf("wave %d", *about.Wave), "wave "+of[*about.Wave].Name, 1)
		}
		says := ""
		if about.Cluster != "" {
			says = strings.Replace(h.Text, "cluster "+about.Cluster, "%s", 1)
			h.Clusters = []string{about.Cluster}
		}
		if last := len(out) - 1; says != "" && says == same && out[last].Rollout == h.Rollout &&
			out[last].Actor == h.Actor {
			out[last].Clusters = append(out[last].Clusters, about.Cluster)
			out[last].Text = strings.Replace(says, "%s", fmt.Sprintf("%d clusters", len(out[last].Clusters)), 1)
			continue
		}
		same = says
		out = append(out, h)
	}
	return out
}

// number is that of the rollout that a subject names; 0 for the fleet subscription itself.
func number(name, subject string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(subject, name+"/"))
	if err != nil {
		return 0
	}
	return n
}
