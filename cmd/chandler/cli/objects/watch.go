package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
)

// watchInterval is how often is asked for what the gateway does not tell of: soon enough for somebody who looks on, and
// rare enough that many of them are cheap beside other requests.
const watchInterval = 2 * time.Second

// Kinds of changes, as watches of Kubernetes name them.
const (
	changeAdded    = "ADDED"
	changeModified = "MODIFIED"
	changeDeleted  = "DELETED"
)

// watchOptions are the flags of a watch.
type watchOptions struct {
	watch, only, changes bool
}

func (w *watchOptions) flags(c *cobra.Command) {
	c.Flags().BoolVarP(&w.watch, "watch", "w", false, "after the list, write what changes until Ctrl-C")
	c.Flags().BoolVar(&w.only, "watch-only", false, "write what changes, without the list")
	c.Flags().BoolVar(&w.changes, "output-watch-events", false,
		"with --watch: say of each object whether it was ADDED, MODIFIED or DELETED")
}

func (w *watchOptions) on() bool { return w.watch || w.only }

// watcher knows what was seen last.
type watcher struct {
	getOptions

	a       *command.Env
	c       *client.Client
	targets []kinds.Target
	seen    []map[string]seen // of each target, by name
	begun   bool              // a line of column names was written
}

type seen struct {
	json string
	item printer.Item
}

// watch has the gateway tell of what changes, and writes it. What it cannot tell of, such as things that were asked
// for by name, is asked for again and again.
func watch(ctx context.Context, a *command.Env, c *client.Client, o getOptions, targets []kinds.Target) error {
	if err := o.Check(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &watcher{getOptions: o, a: a, targets: targets, seen: make([]map[string]seen, len(targets))}
	lists, err := w.read(ctx, c, targets)
	if err == nil {
		err = w.first(lists)
	}
	broken := make(chan error, 1)
	var watches *client.Watches
	w.c, watches = c.Watching(ctx, func(err error) {
		select {
		case broken <- err:
		default: // one is told of
		}
	})
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for lost, broke := false, false; err == nil; {
		lists, err = w.again(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && command.ExitStatus(err) == command.ExitUnavailable:
			lost, err = w.lose(lost, err), nil
		case err == nil:
			lost, err = false, w.changed(lists)
		}
		if err != nil {
			break
		}
		select {
		case <-ctx.Done():
			return nil
		case <-watches.Changed():
			broke = false
		case lostBy := <-broken:
			broke = w.lose(broke, lostBy)
		case <-w.asked(watches, tick):
		}
	}
	return err
}

// lose tells once that the connection is lost.
func (w *watcher) lose(before bool, err error) bool {
	if !before {
		_, _ = fmt.Fprintln(w.a.Err, "connection lost, trying again:", err)
	}
	return true
}

// asked is when what the gateway does not tell of is asked for; nil where it tells of everything.
func (w *watcher) asked(watches *client.Watches, tick *time.Ticker) <-chan time.Time {
	named := slices.ContainsFunc(w.targets, func(t kinds.Target) bool { return len(t.Refs) > 0 })
	if named || watches.Refused() {
		return tick.C
	}
	return nil
}

// first remembers what there is, and writes it but with --watch-only.
func (w *watcher) first(lists []printer.Listed) error {
	for i, l := range lists {
		w.seen[i] = map[string]seen{}
		for _, it := range l.Items {
			raw, err := json.Marshal(it.Value)
			if err != nil {
				return err
			}
			w.seen[i][it.Name] = seen{string(raw), it}
		}
	}
	switch {
	case w.watching.only:
		return nil
	case w.watching.changes:
		for _, l := range lists {
			for _, it := range l.Items {
				if err := w.write(l.Table, changeAdded, it); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, l := range lists {
		w.begun = w.begun || len(l.Items) > 0
	}
	return w.ShowAll(w.a, lists, single(w.targets))
}

// again reads; an object that was asked for by name and is gone is none.
func (w *watcher) again(ctx context.Context) ([]printer.Listed, error) {
	lists := make([]printer.Listed, len(w.targets))
	for i, t := range w.targets {
		lists[i].Table = t.Kind.Table(w.places[i])
		if len(t.Refs) == 0 {
			items, err := w.items(ctx, w.c, t, w.places[i])
			if err != nil {
				return nil, err
			}
			lists[i].Items = items
			continue
		}
		for _, ref := range t.Refs {
			it, err := t.Kind.Get(ctx, w.c, ref)
			if client.IsStatus(err, http.StatusNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			lists[i].Items = append(lists[i].Items, it)
		}
	}
	return lists, nil
}

// changed writes what is not as it was seen last.
func (w *watcher) changed(lists []printer.Listed) error {
	for i, l := range lists {
		now := make(map[string]seen, len(l.Items))
		for _, it := range l.Items {
			raw, err := json.Marshal(it.Value)
			if err != nil {
				return err
			}
			now[it.Name] = seen{string(raw), it}
			before, known := w.seen[i][it.Name]
			change := changeModified
			switch {
			case !known:
				change = changeAdded
			case before.json == string(raw):
				continue
			}
			if err := w.write(l.Table, change, it); err != nil {
				return err
			}
		}
		for name, before := range w.seen[i] {
			if _, there := now[name]; there {
				continue
			}
			if err := w.gone(l.Table, before.item); err != nil {
				return err
			}
		}
		w.seen[i] = now
	}
	return nil
}

// gone tells that an object is gone: among rows it would look as if it were there.
func (w *watcher) gone(t printer.Table, it printer.Item) error {
	if w.watching.changes {
		return w.write(t, changeDeleted, it)
	}
	_, err := fmt.Fprintln(w.a.Err, plain.Cell(it.Name), "deleted")
	return err
}

// write writes one object, as a row of a table that goes on or as a document.
func (w *watcher) write(t printer.Table, change string, it printer.Item) error {
	o := w.Output
	o.NoHeaders = o.NoHeaders || w.begun
	w.begun = true
	if !w.watching.changes {
		return o.Show(w.a, t, []printer.Item{it}, true)
	}
	t, it = printer.WithChange(t, it, change, o.Document())
	return o.Show(w.a, t, []printer.Item{it}, true)
}
