package prune

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/fbc"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// Plan says what stays of a catalog.
type Plan struct {
	// Notes say what was changed beside what was left out, and what was added as a dependency.
	Notes []string
	// Unmet say what a bundle that stays needs and none of those that stay has.
	Unmet []string

	kept  map[string]*kept
	known map[string]bool // packages of the catalog
}

// kept is what stays of a package.
type kept struct {
	doc            catalog.Package
	chosen         bool // by a person, not as a dependency
	selections     []Selection
	defaultChannel string
	channels       map[string]catalog.Channel
	want           wanted
	bundles        map[string]bool
}

// Make decides what stays: what is selected, and packages that it depends on, as far as the catalog has
// them (R-CAT-16, R-CAT-63). A dependency comes with the whole channel that offers it: the default
// channel where that does.
func Make(packages []catalog.Package, selections []Selection) (*Plan, error) {
	p := &Plan{kept: map[string]*kept{}, known: map[string]bool{}}
	grouped, err := group(packages, selections)
	if err != nil {
		return p, err
	}
	for _, doc := range packages {
		p.known[doc.Name] = true
		if s := grouped[doc.Name]; s != nil {
			k := &kept{doc: doc, chosen: true, selections: s}
			if err := k.settle(); err != nil {
				return p, err
			}
			p.kept[doc.Name] = k
		}
	}
	if err := p.close(packages); err != nil {
		return p, err
	}
	for _, name := range p.Packages() {
		p.Notes = append(p.Notes, p.kept[name].finish()...)
	}
	return p, nil
}

// settle works out the channels and bundles that the selections come to.
func (k *kept) settle() error {
	want, err := choose(k.doc, k.selections)
	if err != nil {
		return err
	}
	k.want, k.channels, k.bundles = want, map[string]catalog.Channel{}, map[string]bool{}
	for channel, bundles := range want {
		k.channels[channel], _ = k.doc.Channel(channel)
		for name := range bundles {
			k.bundles[name] = true
		}
	}
	return nil
}

// cut reports whether some entries of a channel go.
func (k *kept) cut(channel string) bool {
	c, ok := k.doc.Channel(channel)
	return ok && len(k.want[channel]) < len(c.Entries)
}

// finish cuts the channels, and finds a default channel among those that stay.
func (k *kept) finish() []string {
	var notes []string
	for _, name := range sortedKeys(k.channels) {
		if k.cut(name) {
			c, more := cut(k.doc, k.channels[name], k.want[name])
			k.channels[name], notes = c, append(notes, more...)
		}
	}
	k.defaultChannel = k.doc.DefaultChannel
	if _, stays := k.channels[k.defaultChannel]; !stays {
		k.defaultChannel = sortedKeys(k.channels)[0]
		for _, s := range k.selections {
			if s.Channel != "" {
				k.defaultChannel = s.Channel
				break
			}
		}
		notes = append(notes, fmt.Sprintf("package %s: the default channel is %s now, since %s is left out", k.doc.Name,
			k.defaultChannel, k.doc.DefaultChannel))
	}
	return notes
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Packages returns the names of the packages that stay, sorted.
func (p *Plan) Packages() []string { return sortedKeys(p.kept) }

// Apply returns the document as it stays, and false for one that goes. Documents of unknown schemas go with
// their package; those that belong to none stay (R-CAT-8).
func (p *Plan) Apply(b fbc.Blob) (fbc.Blob, bool, error) {
	k := p.kept[b.Package]
	if k == nil {
		return b, !p.known[b.Package] && !ours(b.Schema), nil
	}
	switch b.Schema {
	case catalog.SchemaPackage:
		if k.defaultChannel == k.doc.DefaultChannel {
			return b, true, nil
		}
		out, err := b.With("defaultChannel", k.defaultChannel)
		return out, true, err
	case catalog.SchemaChannel:
		c, stays := k.channels[b.Name]
		if !stays || !k.cut(b.Name) {
			return b, stays, nil
		}
		out, err := entries(b, c)
		return out, true, err
	case catalog.SchemaBundle:
		return b, k.bundles[b.Name], nil
	case catalog.SchemaDeprecations:
		return k.deprecations(b)
	}
	return b, true, nil
}

// entries puts the entries that stay into a channel's document, in the order that its author gave them.
func entries(b fbc.Blob, c catalog.Channel) (fbc.Blob, error) {
	var body catalog.Channel
	if err := json.Unmarshal(b.Raw, &body); err != nil {
		return b, errs.Wrap(errs.Invalid, err, "%s", b)
	}
	stay := make([]catalog.Entry, 0, len(c.Entries))
	for _, old := range body.Entries {
		if i := slices.IndexFunc(c.Entries, func(e catalog.Entry) bool { return e.Name == old.Name }); i >= 0 {
			stay = append(stay, c.Entries[i])
		}
	}
	return b.With("entries", stay)
}

func ours(schema string) bool {
	switch schema {
	case catalog.SchemaPackage, catalog.SchemaChannel, catalog.SchemaBundle, catalog.SchemaDeprecations:
		return true
	}
	return false
}

// deprecations leaves out what speaks of things that go.
func (k *kept) deprecations(b fbc.Blob) (fbc.Blob, bool, error) {
	var body struct {
		Entries []json.RawMessage `json:"entries"`
	}
	if err := json.Unmarshal(b.Raw, &body); err != nil {
		return b, false, errs.Wrap(errs.Invalid, err, "%s", b)
	}
	stay := []json.RawMessage{}
	for _, raw := range body.Entries {
		var e struct {
			Reference struct {
				Schema string `json:"schema"`
				Name   string `json:"name"`
			} `json:"reference"`
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			return b, false, errs.Wrap(errs.Invalid, err, "%s", b)
		}
		_, channel := k.channels[e.Reference.Name]
		switch {
		case e.Reference.Schema == catalog.SchemaPackage,
			e.Reference.Schema == catalog.SchemaChannel && channel,
			e.Reference.Schema == catalog.SchemaBundle && k.bundles[e.Reference.Name]:
			stay = append(stay, raw)
		}
	}
	if len(stay) == len(body.Entries) || len(stay) == 0 {
		return b, len(stay) > 0, nil
	}
	out, err := b.With("entries", stay)
	return out, true, err
}
