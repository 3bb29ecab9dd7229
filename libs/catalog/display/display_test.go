package display_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
	"github.com/chandler-fleet/chandler/libs/catalog/display"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
)

func metadata(t *testing.T, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestFeatures proves R-UI-1 and R-DIS-3: features are read from the list annotation and from the single
// ones, which go before it.
func TestFeatures(t *testing.T) {
	t.Parallel()
	const list = "operators.openshift.io/infrastructure-features"
	for name, c := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"none": {nil, ""},
		"the list": {
			map[string]string{list: `["Disconnected", "fips", " proxy-aware "]`},
			"disconnected fips-compliant proxy-aware",
		},
		"no list": {map[string]string{list: `[fips]`}, ""},
		"single ones": {map[string]string{
			"features.operators.openshift.io/cnf": "true",
			"features.operators.openshift.io/csi": "false",
		}, "cnf"},
		"against the list": {map[string]string{
			list: `["disconnected"]`,
			"features.operators.openshift.io/disconnected": "false",
		}, ""},
		"beside the list": {map[string]string{
			list: `["csi"]`,
			"features.operators.openshift.io/disconnected": "true",
		}, "csi disconnected"},
		"text of something": {
			map[string]string{"features.operators.openshift.io/valid-subscription": "none needed"},
			"",
		},
	} {
		m := display.Read(catalog.Bundle{Metadata: metadata(t, map[string]any{"annotations": c.annotations})})
		if got := strings.Join(m.Features(), " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestReadPassesOverWhatHasAnotherForm(t *testing.T) {
	t.Parallel()
	m := display.Read(catalog.Bundle{Metadata: json.RawMessage(
		`{"displayName": "A", "keywords": "x", "provider": [], "installModes": [{"type": "OwnNamespace", "supported": true}]}`)})
	if m.DisplayName != "A" || m.Keywords != nil || m.Provider.Name != "" ||
		strings.Join(m.Modes(), "") != "OwnNamespace" {
		t.Errorf("got %+v", m)
	}
	if m := display.Read(catalog.Bundle{Metadata: json.RawMessage(`[]`)}); m.DisplayName != "" {
		t.Errorf("got %+v", m)
	}
}

func TestCapability(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"deep insights ": "Deep Insights", "Auto Pilot": "Auto Pilot",
		"Everything": "", "": "",
	} {
		if got := (display.Metadata{Annotations: map[string]string{"capabilities": given}}).Capability(); got != want {
			t.Errorf("%q: %q", given, got)
		}
	}
}

// TestEntries proves R-CAT-108: newest version first, and nothing that carries olm.deprecated.
func TestEntries(t *testing.T) {
	t.Parallel()
	gone := []catalog.Property{{Type: catalog.TypeDeprecated, Value: json.RawMessage(`{}`)}}
	p := &catalog.Package{
		Bundles: []catalog.Bundle{
			{Name: "a.v1", Version: "1.0.0"},
			{Name: "a.v10", Version: "10.0.0"},
			{Name: "a.v9", Version: "9.0.0"},
			{Name: "a.v11", Version: "11.0.0", Properties: gone},
			{Name: "a.odd", Version: "odd"},
			{Name: "a.v9b", Version: "9.0.0", Release: "2"},
		},
		Channels: []catalog.Channel{
			{Name: "all", Entries: []catalog.Entry{
				{Name: "a.odd"},
				{Name: "a.v1"},
				{Name: "a.v9"},
				{Name: "a.v9b"},
				{Name: "a.v10"},
				{Name: "a.v11"},
				{Name: "a.virtual"},
			}},
			{Name: "gone", Entries: []catalog.Entry{{Name: "a.v11"}}},
			{Name: "one", Entries: []catalog.Entry{{Name: "a.v10"}, {Name: "a.v1", Replaces: "a.v10"}}},
		},
	}
	var names []string
	for _, b := range display.Entries(p, p.Channels[0]) {
		names = append(names, b.Name)
	}
	if got := strings.Join(names, " "); got != "a.v10 a.v9b a.v9 a.v1 a.odd" {
		t.Errorf("got %s", got)
	}
	if _, ok := display.Head(p, p.Channels[1]); ok {
		t.Error("a channel without a version to show has a head")
	}
	if head, ok := display.Head(p, p.Channels[2]); !ok || head.Name != "a.v1" {
		t.Errorf("the graph decides, not the version: %s", head.Name)
	}
}

// TestCardIsBounded: an author's essay does not grow a list, and cuts no character in two.
func TestCardIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 5000)
	many := make([]string, 500)
	labels := map[string]string{}
	for i := range many {
		many[i] = strings.Repeat("w", i+1)
		labels[many[i]] = long
	}
	p := &catalog.Package{
		Name: "a", DefaultChannel: "c", Channels: []catalog.Channel{
			{Name: "c", Entries: []catalog.Entry{{Name: "a.v1"}}},
		},
		Bundles: []catalog.Bundle{{Name: "a.v1", Version: "1.0.0", Metadata: metadata(t, map[string]any{
			"displayName": "nul\x00 " + long, "keywords": many, "labels": labels,
			"provider": map[string]string{"name": long}, "annotations": map[string]string{
				"description": long, "categories": strings.Join(many, ","),
			},
		})}},
	}
	c, m := display.Of(p)
	raw := metadata(t, c)
	if len(raw) > 16<<10 || strings.Contains(c.DisplayName, "\x00") || !utf8.ValidString(c.Summary) ||
		!strings.HasSuffix(c.Summary, "…") || len(m.Keywords) != len(many) {
		t.Errorf("%d bytes: %s", len(raw), c.Summary)
	}
}

// TestRealCards: every package of a real catalog has what tiles need.
func TestRealCards(t *testing.T) {
	t.Parallel()
	c, err := load.Load(os.DirFS(catalogtest.Unpack(t, catalogtest.CertifiedFBC420, nil)), load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	named, levels, disconnected := 0, 0, 0
	for i := range c.Packages {
		card, _ := display.Of(&c.Packages[i])
		if card.DisplayName != "" && card.CSV != "" && card.Version != "" && len(card.InstallModes) > 0 {
			named++
		}
		if card.Capability != "" {
			levels++
		}
		for _, f := range card.Features {
			if f == "disconnected" {
				disconnected++
			}
		}
	}
	got := []bool{named == len(c.Packages), levels > len(c.Packages)*9/10, disconnected > len(c.Packages)/3}
	if !cmp.Equal(got, []bool{true, true, true}) {
		t.Errorf("of %d packages %d have names, %d levels, %d are for disconnected sites", len(c.Packages), named,
			levels, disconnected)
	}
}
