package v2_test

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/catalog"
	v2 "github.com/chandler-fleet/chandler/services/resolver/resolve/v2"
)

// decision is one that was made when these rules were the newest: what was asked, the packages that it was asked
// of, and the result that came of it.
type decision struct {
	Test      string            `json:"test"` // what it was made for
	Record    v2.Record         `json:"record"`
	Documents []catalog.Package `json:"documents"`
	Result    json.RawMessage   `json:"result"`
}

// decisions reads the recorded ones. They are never made anew: a difference is a fault of the change that shows it.
func decisions(t *testing.T) []decision {
	t.Helper()
	f, err := os.Open("testdata/decisions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	var out []decision
	d := json.NewDecoder(bufio.NewReader(f))
	for d.More() {
		var one decision
		if err := d.Decode(&one); err != nil {
			t.Fatal(err)
		}
		out = append(out, one)
	}
	return out
}

// TestDecisionsAreMadeAgain: a recorded decision comes out byte for byte as it was made, whatever became of the
// libraries that these rules use (DESIGN D5).
func TestDecisionsAreMadeAgain(t *testing.T) {
	t.Parallel()
	list := decisions(t)
	bySemantics, classes := map[string]int{}, map[string]bool{}
	for i, d := range list {
		r := v2.Resolve(d.Record.Input(newReplay(t, d)))
		got, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(d.Result), string(got)); diff != "" {
			t.Errorf("decision %d (%s) comes out otherwise (-then +now):\n%s", i, d.Test, diff)
		}
		bySemantics[d.Record.Semantics]++
		for _, c := range r.Components {
			if c.Failure != nil {
				classes[string(c.Failure.Class)] = true
			}
		}
	}
	if bySemantics[v2.Semantics] < 60 || bySemantics["chandler.resolve.v1"] < 20 || len(classes) < 5 {
		t.Errorf("only %v decisions are looked at, with failures %v", bySemantics, classes)
	}
}

// replay answers from a record, as the resolver does.
type replay struct {
	record   v2.Record
	packages map[string]*v2.Package
}

func newReplay(t *testing.T, d decision) replay {
	t.Helper()
	r := replay{record: d.Record, packages: map[string]*v2.Package{}}
	for _, p := range d.Documents {
		id, err := p.Digest()
		if err != nil {
			t.Fatal(err)
		}
		r.packages[string(id)] = v2.Index(p, id)
	}
	return r
}

func (r replay) answer(kind v2.ReadKind, c v2.CatalogKey, name string) string {
	for _, read := range r.record.Reads {
		if read.Kind == kind && read.Catalog == c && read.Name == name {
			return read.Answer
		}
	}
	return ""
}

func (r replay) list(kind v2.ReadKind, c v2.CatalogKey, name string) []string {
	if a := r.answer(kind, c, name); a != "" {
		return strings.Split(a, ",")
	}
	return nil
}

func (r replay) Catalogs() []v2.Catalog { return r.record.Catalogs }

func (r replay) Package(c v2.CatalogKey, name string) *v2.Package {
	return r.packages[r.answer(v2.ReadPackage, c, name)]
}

func (r replay) Providers(c v2.CatalogKey, api catalog.GVK) []string {
	return r.list(v2.ReadAPI, c, v2.APIName(api))
}

func (r replay) Packages(c v2.CatalogKey) []string { return r.list(v2.ReadNames, c, "") }

func (r replay) Image(c v2.CatalogKey, b v2.BundleImage) v2.Fetched {
	return v2.ParseFetched(r.answer(v2.ReadImage, c, b.ReadName()))
}

func (r replay) Health(c v2.CatalogKey) v2.Health { return v2.Health(r.answer(v2.ReadHealth, c, "")) }
