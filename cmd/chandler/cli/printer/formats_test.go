package printer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
)

type gauge struct {
	Name   string            `json:"name"`
	Steps  int64             `json:"steps,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

func gauges() ([]Column, []Item) {
	show := func(g gauge) Item {
		return Item{Name: "gauge/" + g.Name, kind: "Gauge", Value: g, Cells: []any{g.Name, "east", g.Steps, "far"}}
	}
	return []Column{{Name: "Name"}, {Name: "Region", Cut: 2}, {Name: "Steps", Cut: 1}, {Name: "Place", Wide: true}},
		[]Item{
			show(gauge{Name: "g10", Steps: 12345678, Labels: map[string]string{"sea.example.org/tier": "1"}}),
			show(gauge{Name: "g9"}),
		}
}

// Formats and flags are those of kubectl.
func TestFormats(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		o    Output
		want string
	}{
		"jsonpath": {Output{Format: "jsonpath={.items[*].name}"}, "g10 g9"},
		"whole numbers, and what is missing": {
			Output{Format: `jsonpath={range .items[*]}{.kind}:{.steps}{"\n"}{end}`}, "Gauge:12345678\nGauge:\n",
		},
		"jsonpath of a file": {Output{Format: "jsonpath-file=" + file("p", "{.items[0].name}")}, "g10"},
		"template": {
			Output{Format: `go-template={{range .items}}{{.name}};{{end}}`}, "g10;g9;",
		},
		"template of a file": {Output{Format: "go-template-file=" + file("t", "{{.kind}}")}, "List"},
		"columns": {
			Output{Format: "custom-columns=N:.name,S:{.steps},L:labels"},
			"N     S          L\ng10   12345678   {\"sea.example.org/tier\":\"1\"}\ng9    <none>     <none>\n",
		},
		"columns of a file": {
			Output{Format: "custom-columns-file=" + file("c", "N  S\n.name .steps\n"), NoHeaders: true},
			"g10   12345678\ng9    <none>\n",
		},
		"sorted as numbers in text are": {Output{Format: "name", SortBy: ".name"}, "gauge/g9\ngauge/g10\n"},
		"sorted, without first":         {Output{Format: "name", SortBy: "{.steps}"}, "gauge/g9\ngauge/g10\n"},
		"labels": {
			Output{LabelColumns: []string{"sea.example.org/tier"}, ShowLabels: true},
			"NAME   REGION   STEPS      TIER     LABELS\n" +
				"g10    east     12345678   1        sea.example.org/tier=1\n" +
				"g9     east     0          <none>   <none>\n",
		},
		"cut":                   {Output{Width: 20}, "NAME   STEPS\ng10    12345678\ng9     0\n"},
		"cut as far as it goes": {Output{Width: 3}, "NAME\ng10\ng9\n"},
		"wide is never cut": {
			Output{Width: 20, Format: "wide"},
			"NAME   REGION   STEPS      PLACE\ng10    east     12345678   far\ng9     east     0          far\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			columns, items := gauges()
			var b strings.Builder
			if err := c.o.Write(&b, columns, items, false); err != nil || b.String() != c.want {
				t.Errorf("wrote\n%s(%v), want\n%s", b.String(), err, c.want)
			}
		})
	}
}

// A mistake in a format is one of the command line, and nothing is written.
func TestFormatMistakes(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		"jsno":                             "did you mean json?",
		"jsonpth={.a}":                     "did you mean jsonpath?",
		"jsonpath":                         "needs a template",
		"jsonpath=":                        "needs a template",
		"jsonpath={.items[}":               "jsonpath",
		"jsonpath={.items[*].name.a[0:x]}": "jsonpath",
		"go-template={{.a":                 "go-template",
		"go-template={{index .items 99}}":  "index out of range",
		"custom-columns=NAME":              "want NAME:PATH",
		"custom-columns=NAME:":             "want NAME:PATH",
		"custom-columns=NAME:{.a":          "a brace is missing",
	} {
		columns, items := gauges()
		var b strings.Builder
		o := Output{Format: format}
		err := o.Write(&b, columns, items, false)
		if err == nil || command.ExitStatus(err) != command.ExitUsage || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") || b.Len() > 0 {
			t.Errorf("-o %s: %v (want %q), wrote %q", format, err, want, b.String())
		}
	}
	columns, items := gauges()
	for sort, want := range map[string]string{".colour": "has a field .colour", "{.a": "a brace is missing"} {
		o := Output{SortBy: sort}
		if err := o.Write(&strings.Builder{}, columns, items, false); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("--sort-by %s: %v, want %q", sort, err, want)
		}
	}
}

func TestCompareNatural(t *testing.T) {
	t.Parallel()
	ordered := []string{"", "a", "a.v1", "a.v1.9", "a.v1.10", "a.v02", "b"}
	for i := range len(ordered) - 1 {
		if compareNatural(ordered[i], ordered[i+1]) >= 0 || compareNatural(ordered[i+1], ordered[i]) <= 0 {
			t.Errorf("%q does not come before %q", ordered[i], ordered[i+1])
		}
	}
}
