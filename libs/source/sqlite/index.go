package sqlite

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/chandler-fleet/chandler/libs/catalog"
)

// index is what a database says beside its bundles.
type index struct {
	defaults map[string]string // default channel by package
	heads    map[place]string
	entries  map[place][]entry
	packages map[string][]string // those that hold a bundle, sorted

	properties, dependencies map[string][]catalog.Property // by bundle; values are not checked yet
	provided, required       map[string][]catalog.GVK
	images                   map[string][]string
	deprecated               map[string]bool
}

// place is a channel.
type place struct{ pkg, channel string }

// entry is a row of channel_entry.
type entry struct {
	id, bundle, replaces string
	depth                int // from the head
}

// index reads every table but the bundles.
func (d *database) index(ctx context.Context) (*index, error) {
	x := &index{
		defaults: map[string]string{}, heads: map[place]string{}, entries: map[place][]entry{},
		packages: map[string][]string{}, properties: map[string][]catalog.Property{},
		dependencies: map[string][]catalog.Property{}, provided: map[string][]catalog.GVK{},
		required: map[string][]catalog.GVK{}, images: map[string][]string{}, deprecated: map[string]bool{},
	}
	err := d.inspect(ctx)
	for _, step := range []func(context.Context, *database) error{x.readGraph, x.readProperties, x.readAPIs} {
		if err == nil {
			err = step(ctx, d)
		}
	}
	return x, err
}

func (x *index) readGraph(ctx context.Context, d *database) error {
	err := d.each(ctx, "package", func(v []string) error {
		x.defaults[v[0]] = v[1]
		return d.remember(v...)
	}, "name", "default_channel")
	if err != nil {
		return err
	}
	err = d.each(ctx, "channel", func(v []string) error {
		x.heads[place{v[0], v[1]}] = v[2]
		return d.remember(v...)
	}, "package_name", "name", "head_operatorbundle_name")
	if err != nil {
		return err
	}
	holders := map[string]map[string]bool{}
	err = d.each(ctx, "channel_entry", func(v []string) error {
		at := place{v[0], v[1]}
		depth, _ := strconv.Atoi(v[5]) // none is 0
		x.entries[at] = append(x.entries[at], entry{id: v[2], bundle: v[3], replaces: v[4], depth: depth})
		if _, ok := x.defaults[at.pkg]; ok {
			if holders[v[3]] == nil {
				holders[v[3]] = map[string]bool{}
			}
			holders[v[3]][at.pkg] = true
		}
		return d.remember(v...)
	}, "package_name", "channel_name", "entry_id", "operatorbundle_name", "replaces", "depth")
	for bundle, packages := range holders {
		x.packages[bundle] = slices.Sorted(maps.Keys(packages))
	}
	return err
}

func (x *index) readProperties(ctx context.Context, d *database) error {
	for table, into := range map[string]map[string][]catalog.Property{
		"properties": x.properties, "dependencies": x.dependencies,
	} {
		err := d.each(ctx, table, func(v []string) error {
			into[v[0]] = append(into[v[0]], catalog.Property{Type: v[1], Value: []byte(v[2])})
			return d.remember(v...)
		}, "operatorbundle_name", "type", "value")
		if err != nil {
			return err
		}
	}
	err := d.each(ctx, "related_image", func(v []string) error {
		x.images[v[0]] = append(x.images[v[0]], v[1])
		return d.remember(v...)
	}, "operatorbundle_name", "image")
	if err != nil {
		return err
	}
	return d.each(ctx, "deprecated", func(v []string) error {
		x.deprecated[v[0]] = true
		return d.remember(v...)
	}, "operatorbundle_name")
}

// readAPIs reads the tables of APIs where they name bundles. Before that they named channel entries, not
// all of them, in databases that held the manifests of every bundle.
func (x *index) readAPIs(ctx context.Context, d *database) error {
	for table, into := range map[string]map[string][]catalog.GVK{
		"api_provider": x.provided, "api_requirer": x.required,
	} {
		if !d.has(table, "operatorbundle_name") {
			continue
		}
		err := d.each(ctx, table, func(v []string) error {
			into[v[0]] = append(into[v[0]], catalog.GVK{Group: v[1], Version: v[2], Kind: v[3]})
			return d.remember(v...)
		}, "operatorbundle_name", "group_name", "version", "kind")
		if err != nil {
			return err
		}
	}
	return nil
}

// batch is how many rows are read before the end of the context is noticed.
const batch = 4096

// graph makes the entries of a channel of its rows. known are the bundles that there are. The chain of
// rows from the head gives what replaces what; edges of other rows are skips.
func graph(ctx context.Context, rows []entry, head string, known map[string]bool) ([]catalog.Entry, error) {
	byID := make(map[string]entry, len(rows))
	for _, r := range rows {
		byID[r.id] = r
	}
	out := map[string]*catalog.Entry{}
	for _, r := range rows {
		if known[r.bundle] && out[r.bundle] == nil {
			out[r.bundle] = &catalog.Entry{Name: r.bundle}
		}
	}
	chain := follow(rows, byID, head)
	for id := range chain {
		r := byID[id]
		if e := out[r.bundle]; e != nil && r.replaces != "" {
			e.Replaces = byID[r.replaces].bundle
		}
	}
	skips := map[[2]string]bool{} // one bundle may skip as many as there are rows
	for i, r := range rows {
		if i%batch == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		e, to := out[r.bundle], byID[r.replaces].bundle
		if e != nil && !chain[r.id] && to != "" && to != e.Replaces && !skips[[2]string{r.bundle, to}] {
			skips[[2]string{r.bundle, to}] = true
			e.Skips = append(e.Skips, to)
		}
	}
	list := make([]catalog.Entry, 0, len(out))
	for _, e := range out {
		slices.Sort(e.Skips)
		list = append(list, *e)
	}
	slices.SortFunc(list, func(a, b catalog.Entry) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// follow returns the ids of the chain of rows that begins with the first row of the head, once round
// where it is a ring.
func follow(rows []entry, byID map[string]entry, head string) map[string]bool {
	chain := map[string]bool{}
	var first *entry
	for i := range rows {
		if rows[i].bundle == head && (first == nil || rows[i].depth < first.depth) {
			first = &rows[i]
		}
	}
	if first == nil {
		return chain
	}
	for id := first.id; id != "" && !chain[id]; id = byID[id].replaces {
		if _, ok := byID[id]; !ok {
			break
		}
		chain[id] = true
	}
	return chain
}
