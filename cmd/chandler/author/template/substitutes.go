package template

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/fbc"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// substitution puts an image in place of another bundle (R-CAT-82).
type substitution struct {
	Name string `json:"name"` // image of the new bundle
	Base string `json:"base"` // image of the bundle that it takes the place of
}

func expandSubstitutes(ctx context.Context, text []byte, r *renderer) ([]fbc.Blob, error) {
	var t struct {
		Schema        string         `json:"schema"`
		Entries       entries        `json:"entries"`
		Substitutions []substitution `json:"substitutions"`
	}
	if err := decode(text, Substitutes, &t); err != nil {
		return nil, err
	}
	blobs, err := t.Entries.expand(ctx, r)
	if err != nil {
		return nil, err
	}
	for i, s := range t.Substitutions {
		if s.Name == "" || s.Base == "" {
			return nil, errs.New(errs.Invalid, "substitution %d needs name and base, two images", i+1).At(
				fmt.Sprintf("/substitutions/%d", i), "R-CAT-82")
		}
		name, err := r.get(ctx, s.Name)
		if err != nil {
			return nil, err
		}
		base, err := r.get(ctx, s.Base)
		if err != nil {
			return nil, err
		}
		if blobs, err = substitute(blobs, name, base); err != nil {
			return nil, err
		}
	}
	return blobs, nil
}

// substitute gives the new bundle the edges of the old one, and lets it take over from it: what replaced
// the old one replaces the new one, and skips the old one.
func substitute(blobs []fbc.Blob, name, base Bundle) ([]fbc.Blob, error) {
	if name.Package != base.Package {
		return nil, errs.New(errs.Invalid, "%s of package %s cannot take the place of %s of package %s", name.Name,
			name.Package, base.Name, base.Package).At("", "R-CAT-82")
	}
	found, present := false, false
	for i, b := range blobs {
		present = present || b.Schema == catalog.SchemaBundle && b.Package == name.Package && b.Name == name.Name
		if b.Schema != catalog.SchemaChannel || b.Package != base.Package {
			continue
		}
		entries, err := entriesOf(b)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(entries, func(e catalog.Entry) bool { return e.Name == base.Name })
		if at < 0 {
			continue
		}
		found = true
		for j := range entries {
			if entries[j].Replaces == base.Name {
				entries[j].Replaces, entries[j].Skips = name.Name, append(entries[j].Skips, base.Name)
			}
		}
		old := entries[at]
		entries = append(entries, catalog.Entry{
			Name: name.Name, Replaces: old.Replaces, SkipRange: old.SkipRange,
			Skips: append(slices.Clone(old.Skips), base.Name),
		})
		if blobs[i], err = b.With("entries", entries); err != nil {
			return nil, err
		}
	}
	if !found {
		return nil, errs.New(errs.NotFound, "%s is in no channel of package %s, so that nothing can take its place",
			base.Name, base.Package).At("", "R-CAT-82")
	}
	if !present {
		blobs = append(blobs, name.Blob)
	}
	return blobs, nil
}

// entriesOf reads the entries of an olm.channel.
func entriesOf(b fbc.Blob) ([]catalog.Entry, error) {
	var body struct {
		Entries []catalog.Entry `json:"entries"`
	}
	if err := json.Unmarshal(b.Raw, &body); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "%s", b)
	}
	return body.Entries, nil
}
