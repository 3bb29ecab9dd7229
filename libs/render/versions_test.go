package render_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/render"
)

// TestVersions: DESIGN D5: rules are called by their name; what is not here is told from what is not here yet, and no
// other rules are taken instead.
func TestVersions(t *testing.T) {
	t.Parallel()
	said := func(name string) render.Renderer {
		return func(render.Input) ([]render.Object, error) { return []render.Object{{Name: name}}, nil }
	}
	v := render.NewVersions(map[string]render.Renderer{
		"chandler.render.v2": said("two"), "chandler.render.v10": said("ten"),
	})
	if v.Newest() != "chandler.render.v10" {
		t.Errorf("newest is %s", v.Newest())
	}
	for name, want := range map[string]struct {
		presence render.Presence
		by       string
	}{
		"chandler.render.v10":      {render.Present, "ten"},
		"chandler.render.v2":       {render.Present, "two"},
		"chandler.render.v1":       {render.Gone, ""},
		"chandler.render.v9":       {render.Gone, ""},
		"chandler.render.v11":      {render.Ahead, ""},
		"chandler.render.v0":       {render.Gone, ""},
		"chandler.render.v02":      {render.Gone, ""},
		"chandler.render.v2 ":      {render.Gone, ""}, //nolint:gocritic // the space is the case
		"chandler.resolve.v2":      {render.Gone, ""},
		"":                         {render.Gone, ""},
		"chandler.render.v9999999": {render.Ahead, ""},
	} {
		if got := v.Presence(name); got != want.presence {
			t.Errorf("%q is %d, want %d", name, got, want.presence)
		}
		objects, err := v.Render(name, render.Input{})
		if want.by == "" {
			if !errs.Is(err, errs.NotFound) || objects != nil {
				t.Errorf("%q renders %v, %v", name, objects, err)
			}
			continue
		}
		if err != nil || objects[0].Name != want.by {
			t.Errorf("%q renders %v, %v", name, objects, err)
		}
	}
	if render.Known.Presence(render.Semantics) != render.Present || render.Known.Newest() != render.Semantics {
		t.Errorf("this release does not have its own rules: %s", render.Known.Newest())
	}
}
