package api

import (
	"strconv"
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestMerge: a merge patch (RFC 7396) leaves alone what it does not name, null takes away, and the result must fit the
// schema of a PUT.
func TestMerge(t *testing.T) {
	t.Parallel()
	now := model.ChangeCatalog{
		Metadata: model.Metadata{Labels: map[string]string{"site": "north", "tier": "1"}}, Priority: 5,
		Source: model.CatalogSource{Type: "directory"},
	}
	out, err := merge(now, map[string]any{"priority": 7, "labels": map[string]any{"site": nil}})
	if err != nil {
		t.Fatal(err)
	}
	if out.Priority != 7 || len(out.Labels) != 1 || out.Labels["tier"] != "1" || out.Source.Type != "directory" {
		t.Errorf("merged %+v", out)
	}
	for _, wrong := range []map[string]any{{"priority": "high"}, {"nothing": 1}, {"source": nil}} {
		if _, err := merge(now, wrong); err == nil {
			t.Errorf("%v was merged", wrong)
		}
	}
}

// TestSettingsPatch: a dry run of a catalog's change takes what can be foretold without reading its source.
func TestSettingsPatch(t *testing.T) {
	t.Parallel()
	c, err := settingsPatch(map[string]any{"priority": 3, "disabled": true})
	if err != nil || c.Priority == nil || *c.Priority != 3 || c.Disabled == nil || !*c.Disabled {
		t.Errorf("read %+v, %v", c, err)
	}
	if _, err := settingsPatch(map[string]any{"source": map[string]any{}}); !errs.Is(err, errs.Unprocessable) {
		t.Errorf("a source: %v", err)
	}
}

// TestCursor: a cursor is what a list gave, and nothing else is taken for one.
func TestCursor(t *testing.T) {
	t.Parallel()
	c, err := cursor("harbour", "ops")
	if err != nil {
		t.Fatal(err)
	}
	p, err := ListQuery{Cursor: c, Limit: 7}.page()
	if err != nil || p.Limit != 7 || len(p.After) != 2 || p.After[1] != "ops" {
		t.Errorf("page %+v, %v", p, err)
	}
	for _, wrong := range []string{"x", "W10", "bnVsbA"} { // no base64 of a list, an empty list, null
		if _, err := (ListQuery{Cursor: wrong}).page(); !errs.Is(err, errs.Invalid) {
			t.Errorf("cursor %q: %v", wrong, err)
		}
	}
}

// TestLocation: rules name places by JSON pointer, answers as the schema's errors do.
func TestLocation(t *testing.T) {
	t.Parallel()
	for pointer, want := range map[string]string{
		"/source/type": "body.source.type", "/targetNamespaces/0": "body.targetNamespaces[0]",
		"/labels/a~1b": "body.labels.a/b", "/": "body", "query.cursor": "query.cursor", "": "",
	} {
		if got := location(pointer); got != want {
			t.Errorf("%q is %q, want %q", pointer, got, want)
		}
	}
}

// TestCheckJSON: what a reader of JSON would drop without a word is refused, with its place.
func TestCheckJSON(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`{"a":1,"b":[{"a":2}]}`:     "",
		`{"a":1,"a":2}`:             "body.a: the field stands twice",
		`{"a":[{"b":1,"b":2}]}`:     "body.a[0].b: the field stands twice",
		`{"a":"x` + `\u0000` + `"}`: "body.a: the text holds U+0000, which is not taken",
		"{\"a\":\"\xff\"}":          "body: the body is not valid UTF-8",
	} {
		got := ""
		if err := checkJSON([]byte(doc)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", strconv.Quote(doc), got, want)
		}
	}
}

// TestReadersOfOneHook: whoever sends slowly to one hook holds up that hook alone.
func TestReadersOfOneHook(t *testing.T) {
	t.Parallel()
	var r readers
	var leave func()
	for range maxHookBodies {
		var ok bool
		if leave, ok = r.enter("a"); !ok {
			t.Fatal("a place is missing")
		}
	}
	if _, ok := r.enter("a"); ok {
		t.Error("one body too many is read")
	}
	if _, ok := r.enter("b"); !ok {
		t.Error("another hook is held up")
	}
	leave()
	if _, ok := r.enter("a"); !ok {
		t.Error("a place that was given back is not free")
	}
}
