package index_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/index"
)

// pack returns a package with one channel per list of entry names, newest first.
func pack(name string, channels map[string]string) catalog.Package {
	p := catalog.Package{Name: name}
	for c, list := range channels {
		ch := catalog.Channel{Name: c}
		names := strings.Fields(list)
		for i, n := range names {
			e := catalog.Entry{Name: n}
			if i+1 < len(names) {
				e.Replaces = names[i+1]
			}
			ch.Entries = append(ch.Entries, e)
			if _, have := p.Bundle(n); !have {
				p.Bundles = append(p.Bundles, catalog.Bundle{Name: n, Content: digest.Digest("of " + n)})
			}
		}
		p.Channels = append(p.Channels, ch)
	}
	return p
}

func input(old, now []catalog.Package) index.Input {
	in := index.Input{
		Before: index.Revision{}, After: index.Revision{}, Old: map[string]catalog.Package{},
		New: map[string]catalog.Package{},
	}
	put := func(r index.Revision, docs map[string]catalog.Package, ps []catalog.Package) {
		for _, p := range ps {
			r[p.Name] = digest.Bytes(fmt.Appendf(nil, "%v", p))
			docs[p.Name] = p
		}
	}
	put(in.Before, in.Old, old)
	put(in.After, in.New, now)
	return in
}

// TestChanges holds the table of what a revision can do to a package.
func TestChanges(t *testing.T) {
	t.Parallel()
	mutated := pack("p", map[string]string{"s": "b a"})
	mutated.Bundles[0].Content = "other"
	described := pack("p", map[string]string{"s": "b a"})
	described.Description = "new words"
	twoHeads := pack("p", map[string]string{"s": "b a"})
	twoHeads.Channels[0].Entries[0].Replaces = ""
	moved := pack("p", map[string]string{"s": "b a"})
	moved.DefaultChannel = "s"
	ended := pack("p", map[string]string{"s": "b a"})
	ended.Deprecations = []catalog.Deprecation{
		{Schema: "olm.package", Message: "m"},
		{Schema: "olm.bundle", Name: "a", Message: "m"},
		{Schema: "olm.channel", Name: "s", Message: "m"},
	}
	other := pack("p", map[string]string{"s": "b a"})
	other.Deprecations = []catalog.Deprecation{
		{Schema: "olm.bundle", Name: "b", Message: "m"},
		{Schema: "olm.channel", Name: "s", Message: "other words"},
	}
	was := []catalog.Package{pack("p", map[string]string{"s": "b a"})}
	move := func(c, from, to string) []events.HeadMove { return []events.HeadMove{{Channel: c, From: from, To: to}} }
	for _, c := range []struct {
		name     string
		old, now []catalog.Package
		want     []events.PackageChange
	}{
		{"nothing", was, was, []events.PackageChange{}},
		{"first revision", nil, was, []events.PackageChange{
			{Package: "p", Change: "added", Heads: move("s", "", "b")},
		}},
		{"package gone", was, nil, []events.PackageChange{
			{Package: "p", Change: "removed", Heads: move("s", "b", "")},
		}},
		{
			"new head", was,
			[]catalog.Package{pack("p", map[string]string{"s": "c b a"})},
			[]events.PackageChange{{
				Package: "p", Change: "changed", Heads: move("s", "b", "c"),
				BundlesAdded: []string{"c"},
			}},
		},
		{
			"new channel", was,
			[]catalog.Package{pack("p", map[string]string{"s": "b a", "f": "b"})},
			[]events.PackageChange{{Package: "p", Change: "changed", Heads: move("f", "", "b")}},
		},
		{
			"older one gone", was,
			[]catalog.Package{pack("p", map[string]string{"s": "b"})},
			[]events.PackageChange{{Package: "p", Change: "changed", BundlesRemoved: []string{"a"}}},
		},
		{
			"other content", was,
			[]catalog.Package{mutated},
			[]events.PackageChange{{Package: "p", Change: "changed", BundlesMutated: []string{"b"}}},
		},
		{"other words", was, []catalog.Package{described}, []events.PackageChange{{Package: "p", Change: "changed"}}},
		{
			"default channel", was,
			[]catalog.Package{moved},
			[]events.PackageChange{{Package: "p", Change: "changed", DefaultChannelTo: "s"}},
		},
		{"deprecated", was, []catalog.Package{ended}, []events.PackageChange{
			{Package: "p", Change: "changed", Deprecated: []string{"olm.bundle/a", "olm.channel/s", "olm.package"}},
		}},
		{"undeprecated", []catalog.Package{ended}, []catalog.Package{other}, []events.PackageChange{
			{
				Package: "p", Change: "changed", Deprecated: []string{"olm.bundle/b"},
				Undeprecated: []string{"olm.bundle/a", "olm.package"},
			},
		}},
		{"head lost", was, []catalog.Package{twoHeads}, []events.PackageChange{
			{Package: "p", Change: "changed", Heads: move("s", "b", "")},
		}},
	} {
		in := input(c.old, c.now)
		got, all, err := index.Changes(in)
		if err != nil || all {
			t.Errorf("%s: all %v, %v", c.name, all, err)
			continue
		}
		for i := range got {
			if got[i].Digest != string(in.After[got[i].Package]) {
				t.Errorf("%s: digest %q", c.name, got[i].Digest)
			}
			got[i].Digest = ""
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestMissingDocument proves that a difference is never computed from half the input.
func TestMissingDocument(t *testing.T) {
	t.Parallel()
	in := input(nil, []catalog.Package{pack("p", map[string]string{"s": "a"})})
	in.New = nil
	if _, _, err := index.Changes(in); err == nil {
		t.Error("no error")
	}
}

// TestBounded proves that changes fit into an event however large the catalog is: details go first, names
// last, and beyond them one word says that all is different (R-CAT-61).
func TestBounded(t *testing.T) {
	t.Parallel()
	many := func(packages, versions int, extra string) []catalog.Package {
		var out []catalog.Package
		for i := range packages {
			var names strings.Builder
			for j := range versions {
				fmt.Fprintf(&names, "%sa-rather-long-operator-name-%d.v1.%d.0 ", extra, i, j)
			}
			out = append(out, pack(fmt.Sprintf("p%05d", i), map[string]string{"stable": names.String()}))
		}
		return out
	}
	for _, c := range []struct {
		name               string
		old, now           []catalog.Package
		changes            int
		heads, digest, all bool
	}{
		{"lists of bundles go first", many(300, 60, ""), many(300, 60, "x"), 300, true, true, false},
		{"then heads", nil, many(1500, 2, ""), 1500, false, true, false},
		{"then digests", nil, many(3000, 2, ""), 3000, false, false, false},
		{"a first revision beyond all that", nil, many(20_000, 2, ""), 0, false, false, true},
		{"one that takes its place", many(20_000, 2, ""), many(20_000, 2, "x"), 0, false, false, true},
		{"nothing is left", many(20_000, 2, ""), nil, 0, false, false, true},
	} {
		got, all, err := index.Changes(input(c.old, c.now))
		if err != nil || all != c.all || len(got) != c.changes || got == nil {
			t.Errorf("%s: %d changes, all %v, %v", c.name, len(got), all, err)
			continue
		}
		raw, err := json.Marshal(got)
		if err != nil || len(raw) > index.MaxChangesBytes {
			t.Errorf("%s: %d bytes (%v)", c.name, len(raw), err)
		}
		for _, one := range got {
			if one.BundlesAdded != nil || (len(one.Heads) == 1) != c.heads || (one.Digest != "") != c.digest ||
				one.Package == "" || one.Change == "" {
				t.Fatalf("%s: %+v", c.name, one)
			}
		}
	}
}
