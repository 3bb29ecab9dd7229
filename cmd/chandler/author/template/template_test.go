package template_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/cmd/chandler/author/template"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/fbc"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// render makes bundles up: the image registry.dock.test/<package>:<version> holds that version, with _
// for the + of build metadata; an image with "gone" in it cannot be read.
func render(_ context.Context, ref string) (template.Bundle, error) {
	name, version, ok := strings.Cut(strings.TrimPrefix(ref, "registry.dock.test/"), ":")
	if !ok || strings.Contains(ref, "gone") {
		return template.Bundle{}, errs.New(errs.NotFound, "the registry has no such image")
	}
	version = strings.ReplaceAll(version, "_", "+")
	b := template.Bundle{Package: name, Name: name + ".v" + version, Version: version}
	blob, err := fbc.NewBlob(map[string]any{
		"schema": catalog.SchemaBundle, "package": b.Package, "name": b.Name,
		"image": ref,
	})
	b.Blob = blob
	return b, err
}

// channels writes the channels of documents one entry a line: "stable-v1: a.v1.1.0 > a.v1.0.0, skips a.v1.0.1".
func channels(t *testing.T, blobs []fbc.Blob) string {
	t.Helper()
	var out strings.Builder
	for _, b := range blobs {
		if b.Schema == catalog.SchemaPackage {
			var p catalog.Package
			if err := json.Unmarshal(b.Raw, &p); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "default %s\n", p.DefaultChannel)
		}
		if b.Schema != catalog.SchemaChannel {
			continue
		}
		var c catalog.Channel
		if err := json.Unmarshal(b.Raw, &c); err != nil {
			t.Fatal(err)
		}
		for _, e := range c.Entries {
			fmt.Fprintf(&out, "%s: %s > %s skips %v\n", c.Name, e.Name, e.Replaces, e.Skips)
		}
	}
	return out.String()
}

// semver builds a template of flags and lists of versions.
func semver(head string, lists map[string][]string) string {
	var out strings.Builder
	out.WriteString("schema: olm.semver\n" + head)
	for _, name := range []string{"candidate", "fast", "stable"} {
		if versions := lists[name]; len(versions) > 0 {
			fmt.Fprintf(&out, "%s:\n  bundles:\n", name)
			for _, v := range versions {
				if !strings.Contains(v, ":") {
					v = "gauge:" + v
				}
				fmt.Fprintf(&out, "  - image: registry.dock.test/%s\n", v)
			}
		}
	}
	return out.String()
}

// TestSemver: R-CAT-81, what channels there are, how they are linked, and which is the default.
func TestSemver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, want string
	}{
		"minor by default, edges between streams of a major version, none across": {
			semver("", map[string][]string{"stable": {"1.0.0", "2.0.1", "1.2.1", "1.0.2", "1.0.1", "1.2.0", "2.0.0"}}),
			`default stable-v2.0
stable-v1.0: gauge.v1.0.0 >  skips []
stable-v1.0: gauge.v1.0.1 >  skips []
stable-v1.0: gauge.v1.0.2 >  skips [gauge.v1.0.0 gauge.v1.0.1]
stable-v1.2: gauge.v1.2.0 >  skips []
stable-v1.2: gauge.v1.2.1 > gauge.v1.0.2 skips [gauge.v1.2.0]
stable-v2.0: gauge.v2.0.0 >  skips []
stable-v2.0: gauge.v2.0.1 >  skips [gauge.v2.0.0]
`,
		},
		"major channels": {
			semver("generateMajorChannels: true\n", map[string][]string{
				"fast": {"1.0.0", "1.10.0", "1.9.0", "1.10.0-rc.1"},
			}),
			`default fast-v1
fast-v1: gauge.v1.0.0 >  skips []
fast-v1: gauge.v1.9.0 > gauge.v1.0.0 skips []
fast-v1: gauge.v1.10.0-rc.1 >  skips []
fast-v1: gauge.v1.10.0 > gauge.v1.9.0 skips [gauge.v1.10.0-rc.1]
`,
		},
		"the most stable list names the default channel, its highest version the number": {
			semver("generateMajorChannels: true\ngenerateMinorChannels: true\ndefaultChannelTypePreference: major\n",
				map[string][]string{"candidate": {"2.0.0"}, "stable": {"1.1.0"}}),
			`default stable-v1
stable-v1: gauge.v1.1.0 >  skips []
stable-v1.1: gauge.v1.1.0 >  skips []
candidate-v2: gauge.v2.0.0 >  skips []
candidate-v2.0: gauge.v2.0.0 >  skips []
`,
		},
		"minor is preferred, and each list has a graph of its own": {
			semver("generateMajorChannels: true\ngenerateMinorChannels: true\n",
				map[string][]string{"candidate": {"1.0.0", "1.1.0"}, "fast": {"1.1.0"}}),
			`default fast-v1.1
fast-v1: gauge.v1.1.0 >  skips []
fast-v1.1: gauge.v1.1.0 >  skips []
candidate-v1: gauge.v1.0.0 >  skips []
candidate-v1: gauge.v1.1.0 > gauge.v1.0.0 skips []
candidate-v1.0: gauge.v1.0.0 >  skips []
candidate-v1.1: gauge.v1.1.0 > gauge.v1.0.0 skips []
`,
		},
		"a preference for what is not made is no obstacle; keys in any case": {
			"Schema: olm.semver\nGenerateMajorChannels: false\nDefaultChannelTypePreference: major\nStable:\n  " +
				"Bundles:\n  - Image: registry.dock.test/gauge:1.0.0\n",
			"default stable-v1.0\nstable-v1.0: gauge.v1.0.0 >  skips []\n",
		},
	} {
		blobs, err := template.Expand(t.Context(), template.Semver, []byte(c.text), render)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		// Lists come as YAML has them; [] of no skips is written as nothing.
		if diff := cmp.Diff(c.want, channels(t, blobs)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestErrors: what each template refuses, and in which words (R-CAT-80 … R-CAT-82).
func TestErrors(t *testing.T) {
	t.Parallel()
	const gauge = "\n- {schema: olm.channel, package: gauge, name: calm, entries: [{name: gauge.v1.0.0}]}\n- " +
		"{schema: olm.bundle, image: \"registry.dock.test/gauge:1.0.0\"}\n"
	substitute := func(name, base string) string {
		return "schema: olm.template.substitutes\nentries:" + gauge + "substitutions:\n- {name: \"" + name +
			"\", base: \"" + base + "\"}\n"
	}
	for name, c := range map[string]struct {
		schema, text, want string
	}{
		"two packages": {
			template.Semver, semver("", map[string][]string{"stable": {"1.0.0", "buoy:1.0.0"}}),
			"different packages",
		},
		"two packages, lists": {template.Semver, semver(
			"", map[string][]string{"fast": {"buoy:1.0.0"}, "stable": {"1.0.0"}}), "different packages"},
		"build metadata": {template.Semver, semver(
			"", map[string][]string{"fast": {"1.0.0_a"}, "stable": {"1.0.0_b"}}), "differ in build metadata alone"},
		"image twice": {
			template.Semver, semver("", map[string][]string{"stable": {"1.0.0", "1.0.0"}}),
			"stands twice",
		},
		"no bundles": {template.Semver, "schema: olm.semver\n", "names no bundle"},
		"no image":   {template.Semver, "schema: olm.semver\nstable: {bundles: [{}]}\n", "names no image"},
		"unknown field": {
			template.Semver, "schema: olm.semver\ngenerateMajorChannel: true\n",
			`unknown field "generateMajorChannel"`,
		},
		"unknown field below": {
			template.Semver, "schema: olm.semver\nstable: {bundles: [{image: x, name: y}]}\n",
			`unknown field`,
		},
		"field twice": {template.Semver, "schema: olm.semver\nstable: {}\nstable: {}\n", "already"},
		"odd preference": {template.Semver, semver("defaultChannelTypePreference: patch\n",
			map[string][]string{"stable": {"1.0.0"}}), "it must be minor or major"},
		"unreadable image": {
			template.Semver, semver("", map[string][]string{"stable": {"gone:1.0.0"}}),
			"bundle registry.dock.test/gone:1.0.0: the registry has no such image",
		},
		"no version": {
			template.Semver, semver("", map[string][]string{"stable": {"one"}}),
			"no semantic version",
		},
		"not YAML": {template.Basic, "{", "no YAML or JSON"},
		"other schema": {
			template.Basic, "schema: olm.semver\n",
			`has the schema "olm.semver", not "olm.template.basic"`,
		},
		"no schema":  {template.Basic, "entries: []\n", `has the schema ""`},
		"no entries": {template.Basic, "schema: olm.template.basic\n", "no entries"},
		"more than image": {
			template.Basic,
			"schema: olm.template.basic\nentries: [{schema: olm.bundle, image: x, properties: [], name: z}]\n",
			"take out name, properties",
		},
		"bundle without image": {
			template.Basic, "schema: olm.template.basic\nentries: [{schema: olm.bundle}]\n",
			"must name its image",
		},
		"image no string": {
			template.Basic,
			"schema: olm.template.basic\nentries: [{schema: olm.bundle, image: 7}]\n", "must be a string",
		},
		"entry no document": {
			template.Basic, "schema: olm.template.basic\nentries: [{name: x}]\n",
			"entry 1 of the template: a catalog document is missing root schema",
		},
		"half a substitution": {
			template.Substitutes, substitute("registry.dock.test/gauge:1.0.1", ""),
			"needs name and base",
		},
		"another package": {template.Substitutes, substitute(
			"registry.dock.test/buoy:1.0.1", "registry.dock.test/gauge:1.0.0"), "cannot take the place"},
		"base in no channel": {template.Substitutes, substitute(
			"registry.dock.test/gauge:1.0.1", "registry.dock.test/gauge:0.9.0"), "is in no channel"},
		"no template": {"olm.package", "schema: olm.package\n", "no schema of a template"},
		"too large":   {template.Basic, strings.Repeat("#", catalog.MaxDocumentBytes+1), "more than"},
	} {
		_, err := template.Expand(t.Context(), c.schema, []byte(c.text), render)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// TestSubstitutes: the new bundle has the edges of the old one and takes over from it; what replaced the
// old one replaces the new one (R-CAT-82).
func TestSubstitutes(t *testing.T) {
	t.Parallel()
	text := `schema: olm.template.substitutes
entries:
- {schema: olm.package, name: gauge, defaultChannel: calm}
- schema: olm.channel
  package: gauge
  name: calm
  entries:
  - {name: gauge.v1.2.0, replaces: gauge.v1.1.0}
  - {name: gauge.v1.1.0, replaces: gauge.v1.0.0, skips: [gauge.v1.0.1]}
- {schema: olm.bundle, image: "registry.dock.test/gauge:1.2.0"}
- {schema: olm.bundle, image: "registry.dock.test/gauge:1.1.0"}
substitutions:
- {name: "registry.dock.test/gauge:1.1.0-2", base: "registry.dock.test/gauge:1.1.0"}
`
	blobs, err := template.Expand(t.Context(), template.Substitutes, []byte(text), render)
	if err != nil {
		t.Fatal(err)
	}
	want := `default calm
calm: gauge.v1.2.0 > gauge.v1.1.0-2 skips [gauge.v1.1.0]
calm: gauge.v1.1.0 > gauge.v1.0.0 skips [gauge.v1.0.1]
calm: gauge.v1.1.0-2 > gauge.v1.0.0 skips [gauge.v1.0.1 gauge.v1.1.0]
`
	if diff := cmp.Diff(want, channels(t, blobs)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if last := blobs[len(blobs)-1]; last.Name != "gauge.v1.1.0-2" {
		t.Errorf("the new bundle is not there: %s", last)
	}
}
