package badge_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/services/gateway/badge"
)

var update = flag.Bool("update", false, "write the golden files")

func draw(t *testing.T, label, state string) []byte {
	t.Helper()
	raw, err := badge.Draw(label, state)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestDraw(t *testing.T) {
	t.Parallel()
	for name, c := range map[string][2]string{
		"settled": {"operator", "AtLatestKnown"},
		"pending": {"Tidegauge, north", "UpgradePending"},
		"failed":  {"潮位計 <a> & \"b\"", "ResolutionFailed"},
		"none":    {"operator", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := draw(t, c[0], c[1])
			path := filepath.Join("testdata", name+".svg")
			if *update {
				if err := os.WriteFile(path, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s is not what is drawn:\n%s", path, got)
			}
		})
	}
}

// shape is what a reader of XML finds: the elements with the names of their attributes, and the texts apart.
func shape(t *testing.T, raw []byte) (elements, texts []string) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(raw))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return elements, texts
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, raw)
		}
		switch v := token.(type) {
		case xml.StartElement:
			e := v.Name.Local
			for _, a := range v.Attr {
				e += " " + a.Name.Local
			}
			elements = append(elements, e)
		case xml.CharData:
			if s := strings.TrimSpace(string(v)); s != "" {
				texts = append(texts, s)
			}
		case xml.EndElement:
		default:
			elements = append(elements, fmt.Sprintf("%T", v))
		}
	}
}

// TestHostileLabel: whatever a label is, it stays a text: the picture has the elements and attributes that it always
// has, and a reader of XML reads the label as it was given.
func TestHostileLabel(t *testing.T) {
	t.Parallel()
	usual, _ := shape(t, draw(t, "operator", "AtLatestKnown"))
	for _, label := range []string{
		`</text><script>alert(1)</script>`, `"><script>alert(1)</script>`, `" onload="alert(1)`, `' onload='alert(1)`,
		`]]><script/>`, `<!--`, `-->`, `<![CDATA[`, `&lt;`, `&#60;`, `&unknown;`, `<?xml?>`, `<!DOCTYPE a>`,
		`</title></svg><a href="x">`, `{{.}}`, `%s`, "a\u0301\u0301\u0301",
	} {
		if err := badge.CheckLabel("query.label", label); err != nil {
			t.Errorf("%q: %v", label, err)
		}
		elements, texts := shape(t, draw(t, label, "AtLatestKnown"))
		if fmt.Sprint(elements) != fmt.Sprint(usual) {
			t.Errorf("%q makes %q", label, elements)
		}
		if len(texts) != 3 || texts[0] != label+": AtLatestKnown" || texts[1] != label || texts[2] != "AtLatestKnown" {
			t.Errorf("%q is read as %q", label, texts)
		}
	}
}

func TestCheckLabel(t *testing.T) {
	t.Parallel()
	for _, label := range []string{
		"operator", "潮位計", "a b", "🚢", "e\u0301", "قياس",
	} {
		if err := badge.CheckLabel("query.label", label); err != nil {
			t.Errorf("%q: %v", label, err)
		}
	}
	for label, want := range map[string]string{
		"\u202egniliaF": "cannot be seen", "a\u2066b": "cannot be seen", "a\u200bb": "cannot be seen",
		"a\x00b": "cannot be seen", "a\ufffe": "cannot be seen", " ": "nothing that can be seen",
		"\u0301": "nothing that can be seen", "\u3000": "nothing that can be seen",
	} {
		if err := badge.CheckLabel("query.label", label); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", label, err)
		}
	}
}

// TestPartsHoldTheirTexts: a text begins and ends within its part, and the parts are all of the picture.
func TestPartsHoldTheirTexts(t *testing.T) {
	t.Parallel()
	for _, label := range []string{
		"i", "operator", strings.Repeat("W", badge.MaxLabel), strings.Repeat("潮", badge.MaxLabel), "🚢",
	} {
		var p struct {
			Width int `xml:"width,attr"`
			Parts []struct {
				X     int `xml:"x,attr"`
				Width int `xml:"width,attr"`
			} `xml:"rect"`
			Texts []struct {
				X      int `xml:"x,attr"`
				Length int `xml:"textLength,attr"`
			} `xml:"g>text"`
		}
		if err := xml.Unmarshal(draw(t, label, "CatalogSourcesUnhealthy"), &p); err != nil {
			t.Fatal(err)
		}
		if len(p.Parts) != 2 || len(p.Texts) != 2 || p.Parts[0].Width != p.Parts[1].X ||
			p.Parts[1].X+p.Parts[1].Width != p.Width {
			t.Fatalf("%q: %+v", label, p)
		}
		for i, text := range p.Texts {
			if part := p.Parts[i]; text.Length <= 0 || text.X <= part.X || text.X+text.Length >= part.X+part.Width {
				t.Errorf("%q: text %+v in part %+v", label, text, part)
			}
		}
	}
}

// TestColours: states of one kind have one colour, kinds differ, and white letters are legible on all of them.
func TestColours(t *testing.T) {
	t.Parallel()
	kinds := [][]string{
		{"AtLatestKnown"},
		{
			"UpgradePending", "UpgradeAvailable", "BundleUnpacking", "InstallPlanPending", "InstallPlanMissing",
			"ClusterCordoned",
			"CatalogSourcesUnhealthy", "PackageDeprecated", "ChannelDeprecated", "BundleDeprecated", "Deprecated",
		},
		{"UpgradeFailed", "ResolutionFailed", "BundleUnpackFailed", "InstallPlanFailed"},
		{"", "another word"},
	}
	seen := map[string]int{}
	for i, states := range kinds {
		for _, state := range states {
			var p struct {
				Parts []struct {
					Colour string `xml:"fill,attr"`
				} `xml:"rect"`
			}
			if err := xml.Unmarshal(draw(t, "operator", state), &p); err != nil {
				t.Fatal(err)
			}
			colour := p.Parts[1].Colour
			if kind, known := seen[colour]; known && kind != i {
				t.Errorf("%q has the colour of another kind, %s", state, colour)
			}
			seen[colour] = i
			for _, part := range p.Parts {
				if c := contrast(t, part.Colour); c < 4.5 {
					t.Errorf("%q: white on %s has a contrast of %.2f", state, part.Colour, c)
				}
			}
		}
	}
	if len(seen) != len(kinds) {
		t.Errorf("%d kinds have the colours %v", len(kinds), seen)
	}
}

// contrast is that of white on a colour, as WCAG 2 defines it.
func contrast(t *testing.T, colour string) float64 {
	t.Helper()
	luminance := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			luminance += weight * c / 12.92
		} else {
			luminance += weight * math.Pow((c+0.055)/1.055, 2.4)
		}
	}
	return 1.05 / (luminance + 0.05)
}
