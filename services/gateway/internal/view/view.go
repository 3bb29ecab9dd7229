// Package view wires the read models of the API: one package for each, with the projection that keeps it and the
// queries that answer from it. Nothing here searches the log; the one thing read from it is events by position (package
// eventlist).
package view

import (
	"log/slog"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/approvalpolicies"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/browse"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/catalogs"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/clusters"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/content"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/eventlist"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/fleet"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/installplans"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/keyuses"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/matrix"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/operatorgroups"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/operators"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/roles"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/subscriptions"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/summary"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/webhooks"
)

// Projections are those of all read models.
func Projections() []projection.Projection {
	return []projection.Projection{
		clusters.Projection(), catalogs.Projection(), operatorgroups.Projection(), subscriptions.Projection(),
		installplans.Projection(), operators.Projection(), approvalpolicies.Projection(), roles.Projection(),
		fleet.Projection(),
	}
}

// Places are the schemas of their tables, which queries name without one: each process reads the versions that it knows
// by the search path of its sessions.
func Places(models []projection.Projection) []string {
	list := make([]string, len(models))
	for i, m := range models {
		list[i] = m.Place()
	}
	return list
}

// Deps are what the read models are made of.
type Deps struct {
	Pool    *pg.Pool // sees one tenant at a time
	Work    *pg.Pool // for all tenants
	Log     *eventlog.Log
	Waiters map[string]Waiter // by name of the projection
	Slog    *slog.Logger
	// Sessions tells whose streams go on.
	Sessions eventlist.Sessions
	Bodies   *readmodel.Bodies
	// DefaultCatalogs are the names of the catalogs that come with the installation.
	DefaultCatalogs map[string]bool
}

// Reads answer queries.
type Reads struct {
	Positions      *Positions
	Clusters       *clusters.Reader
	Catalogs       *catalogs.Reader
	Content        *content.Reader
	Browse         *browse.Reader
	OperatorGroups *operatorgroups.Reader
	Subscriptions  *subscriptions.Reader
	InstallPlans   *installplans.Reader
	Operators      *operators.Reader
	Summaries      *summary.Reader
	Policies       *approvalpolicies.Reader
	Fleet          *fleet.Reader
	Matrix         *matrix.Reader
	Events         *eventlist.Reader
	Tail           *eventlist.Tail
	Keys           *keyuses.Reader
	Roles          *roles.Reader
	Webhooks       *webhooks.Reader
}

// New makes the read models.
func New(d Deps) (*Reads, error) {
	c, err := content.New()
	if err != nil {
		return nil, err
	}
	who := &roles.Reader{Pool: d.Pool}
	if w, ok := d.Waiters[roles.Name]; ok {
		who.Model = w
	}
	list := &eventlist.Reader{Pool: d.Pool, Log: d.Log, Work: d.Work}
	positions := &Positions{Pool: d.Pool, Log: d.Log, Waiters: d.Waiters, Events: list}
	return &Reads{
		Positions:      positions,
		Clusters:       &clusters.Reader{Pool: d.Pool},
		Catalogs:       &catalogs.Reader{Pool: d.Pool, Log: d.Log, Bodies: d.Bodies, Defaults: d.DefaultCatalogs},
		Content:        c,
		Browse:         &browse.Reader{Pool: d.Pool, Content: c, Bodies: d.Bodies},
		OperatorGroups: &operatorgroups.Reader{Pool: d.Pool, Bodies: d.Bodies},
		Subscriptions:  &subscriptions.Reader{Pool: d.Pool, Content: c, Bodies: d.Bodies},
		InstallPlans:   &installplans.Reader{Pool: d.Pool, Content: c, Bodies: d.Bodies, Log: d.Log},
		Operators:      &operators.Reader{Pool: d.Pool},
		Summaries:      &summary.Reader{Pool: d.Pool, Copies: copies(d, positions)},
		Policies:       &approvalpolicies.Reader{Pool: d.Pool, Bodies: d.Bodies},
		Fleet:          &fleet.Reader{Pool: d.Pool, Bodies: d.Bodies},
		Matrix:         &matrix.Reader{Pool: d.Pool, Content: c},
		Events:         list,
		Tail:           eventlist.NewTail(list, d.Work, d.Sessions, who),
		Keys:           &keyuses.Reader{Pool: d.Work},
		Roles:          who,
		Webhooks:       &webhooks.Reader{Pool: d.Pool},
	}, nil
}

// copies are what is counted in memory of three read models.
func copies(d Deps, p *Positions) *summary.Copies {
	c := &summary.Copies{
		Pool: d.Pool, Work: d.Work, Log: d.Log, Slog: d.Slog,
		Hold: p.Hold(operators.Name, subscriptions.Name, clusters.Name),
	}
	for _, m := range []projection.Projection{
		operators.Projection(), subscriptions.Projection(), clusters.Projection(),
	} {
		c.Consumers = append(c.Consumers, m.Consumer())
	}
	return c
}
