package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
)

// watchInterval is soon enough for somebody who looks on, and keeps many of them cheap beside other requests.
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

// watch reads again and again, and writes what is not as it was.
func watch(ctx context.Context, a *command.Env, c *client.Client, o getOptions, targets []kinds.Target) error {
	if err := o.Check(); err != nil {
		return err
	}
	w := &watcher{getOptions: o, a: a, c: c, targets: targets, seen: make([]map[string]seen, len(targets))}
	lists, err := w.read(ctx, c, targets)
	if err == nil {
		err = w.first(lists)
	}
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for lost := false; err == nil; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		lists, err = w.again(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && command.ExitStatus(err) == command.ExitUnavailable:
			if !lost {
				_, _ = fmt.Fprintln(a.Err, "connection lost, trying again:", err)
			}
			lost, err = true, nil
		case err == nil:
			lost, err = false, w.changed(lists)
		}
	}
	return err
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
