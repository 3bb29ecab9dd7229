package load_test

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
)

// files is a catalog tree written as text.
type files map[string]string

func (f files) fs() fs.FS {
	out := fstest.MapFS{}
	for name, text := range f {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func loadFiles(t *testing.T, f files) *load.Catalog {
	t.Helper()
	c, err := load.Load(f.fs(), load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The smallest package that passes every rule.
const (
	pkg       = "schema: olm.package\nname: buoy\ndefaultChannel: steady\n---\n"
	channel   = "schema: olm.channel\npackage: buoy\nname: steady\nentries: [{name: buoy.v1.0.0}]\n---\n"
	oneBundle = "schema: olm.bundle\npackage: buoy\nname: buoy.v1.0.0\nimage: " +
		"registry.example.com/buoy:1\nproperties: [{type: olm.package, value: {packageName: buoy, version: " +
		"1.0.0}}]\n---\n"
	valid = pkg + channel + oneBundle
)

// another returns a bundle of package buoy.
func another(name, version string, properties ...string) string {
	s := "schema: olm.bundle\npackage: buoy\nname: " + name + "\nimage: registry.example.com/buoy:" +
		strings.ReplaceAll(version, "+", "-") + "\nproperties:\n" +
		"- {type: olm.package, value: {packageName: buoy, version: " + version + "}}\n"
	for _, p := range properties {
		s += "- " + p + "\n"
	}
	return s + "---\n"
}

// manyRules are properties with one rule more than a package may have.
func manyRules() (out []string) {
	for i := range catalog.MaxRules + 1 {
		out = append(out, fmt.Sprintf("{type: olm.constraint, value: {cel: {rule: 'size(properties) > %d'}}}", i))
	}
	return out
}

// rulesOf returns "severity rule" of every finding.
func rulesOf(c *load.Catalog) []string {
	var out []string
	for _, f := range c.Findings {
		out = append(out, string(f.Severity)+" "+f.Rule)
	}
	return out
}

// TestRules breaks every rule of the validation list once (R-CAT-1 … R-CAT-43): each is found under
// its number, at its place, and the message says what to fix.
func TestRules(t *testing.T) {
	t.Parallel()
	// by other tests here
	broken := map[string]bool{"R-CAT-35": true, "R-CAT-36": true, "R-CAT-37": true, "R-CAT-43": true}
	for _, c := range []struct {
		name string
		in   files
		rule string // "error R-CAT-20"
		line int    // 0 where it does not matter
		says string
	}{
		{"not YAML", files{"a.yaml": "a: [b\n"}, "error R-CAT-1", 0, "not YAML"},
		{
			"not JSON",
			files{"a.json": "{\"schema\": \"olm.package\",\n  \"name\": \"x\n}"},
			"error R-CAT-1", 2,
			"not JSON",
		},
		{"nothing there", files{"README.md": "", ".indexignore": "*.md"}, "error R-CAT-1", 0, "no catalog content"},
		{"prose", files{"README.md": "Hello there."}, "error R-CAT-6", 1, ".indexignore"},
		{
			"duplicate keys",
			files{"a": "schema: olm.package\nSchema: olm.package\n"},
			"error R-CAT-6", 2,
			"duplicate keys for key \"schema\"",
		},
		{"name is a number", files{"a": "schema: olm.package\nname: 1\n"}, "error R-CAT-6", 2, "must be a string"},
		{"empty package", files{"a": "schema: x.test\npackage: \"\"\n"}, "error R-CAT-6", 2, "must not be empty"},
		{"no schema", files{"a": valid, "b": "name: buoy\n"}, "error R-CAT-6", 1, "is missing root schema field"},
		{
			"template",
			files{"a": valid, "b": "schema: olm.template.basic\nentries: []\n"},
			"warning R-CAT-10", 1,
			"template",
		},
		{"semver template", files{"a": valid, "b": "schema: olm.semver\n"}, "warning R-CAT-10", 1, "template"},
		{
			"package manifest",
			files{"a": "packageName: buoy\nchannels: []\n"},
			"error R-CAT-76", 1,
			"no directories of its versions",
		},
		{"sqlite", files{"a": "SQLite format 3\x00\x01\x02"}, "error R-CAT-1", 0, "SQLite"},
		{"package name", files{"a": strings.ReplaceAll(valid, "buoy\n", "Buoy\n")}, "error R-CAT-20", 2, "DNS-1123"},
		{"package twice", files{"a": valid, "b": pkg}, "error R-CAT-21", 1, "a:1"},
		{
			"channel without package",
			files{"a": valid +
				"schema: olm.channel\npackage: other\nname: c\nentries: [{name: x}]\n"},
			"error R-CAT-22", 17,
			"unknown package \"other\"",
		},
		{"channel without name", files{"a": valid +
			"schema: olm.channel\npackage: buoy\nentries: [{name: buoy.v1.0.0}]\n"}, "error R-CAT-22", 16, "no name"},
		{"channel twice", files{"a": valid, "b": channel}, "error R-CAT-22", 3, "duplicate channel \"steady\""},
		{
			"channel of another form",
			files{"a": pkg + oneBundle +
				"schema: olm.channel\npackage: buoy\nname: steady\nentries: {name: buoy.v1.0.0}\n"},
			"error R-CAT-22", 11,
			"right form",
		},
		{
			"entry twice",
			files{"a": pkg + oneBundle +
				"schema: olm.channel\npackage: buoy\nname: steady\nentries:\n- name: buoy.v1.0.0\n- name: buoy.v1.0.0\n"},
			"error R-CAT-23", 16, "occurs twice",
		},
		{
			"entry without name",
			files{"a": pkg + oneBundle + channel +
				"schema: olm.channel\npackage: buoy\nname: c\nentries:\n- {replaces: x}\n"},
			"error R-CAT-23", 20,
			"no name",
		},
		{
			"bundle without package",
			files{"a": valid + "schema: olm.bundle\npackage: other\nname: x\n"},
			"error R-CAT-24", 17, "unknown package",
		},
		{"bundle twice", files{"a": valid, "b": oneBundle}, "error R-CAT-24", 3, "duplicate bundle \"buoy.v1.0.0\""},
		{
			"bundle without name",
			files{"a": valid + "schema: olm.bundle\npackage: buoy\n"},
			"error R-CAT-24", 16,
			"no name",
		},
		{"number without a canonical form", files{
			"a": pkg + channel,
			"b": `{"schema": "olm.bundle", "package": "buoy", "name": "buoy.v1.0.0", "image": "x", "properties": [{"type": "olm.package", "value": {"packageName": "buoy", "version": "1.0.0"}}, {"type": "x", "value": 1e999}]}`,
		}, "error R-CAT-1", 1, "out of range"},
		{
			"long bundle name",
			files{"a": strings.ReplaceAll(valid, "buoy.v1.0.0", "buoy.v"+strings.Repeat("1", 300))},
			"error R-CAT-24", 0, "253",
		},
		{
			"long channel name",
			files{"a": strings.ReplaceAll(valid, "steady", strings.Repeat("s", 300))},
			"error R-CAT-22", 0, "253",
		},
		{"gvk of another form", files{"a": pkg + channel +
			another("buoy.v1.0.0", "1.0.0", "{type: olm.gvk, value: [1]}")}, "error R-CAT-25", 0, "olm.gvk"},
		{
			"gvk group",
			files{"a": pkg + channel + another("buoy.v1.0.0", "1.0.0",
				"{type: olm.gvk.required, value: {group: Sea_, version: v1, kind: Buoy}}")},
			"error R-CAT-25", 0,
			"not a DNS name",
		},
		{
			"range",
			files{"a": pkg + channel + another("buoy.v1.0.0", "1.0.0",
				"{type: olm.package.required, value: {packageName: x, versionRange: about 1}}")},
			"error R-CAT-25", 0,
			"range of versions",
		},
		{
			"required package without name",
			files{"a": pkg + channel +
				another("buoy.v1.0.0", "1.0.0", "{type: olm.package.required, value: {versionRange: '>1.0.0'}}")},
			"error R-CAT-25", 0, "packageName is empty",
		},
		{
			"property without type",
			files{"a": pkg + channel + another("buoy.v1.0.0", "1.0.0", "{value: 1}")},
			"error R-CAT-25", 0, "needs a type",
		},
		{"property without value", files{"a": pkg + channel +
			another("buoy.v1.0.0", "1.0.0", "{type: x, value: null}")}, "error R-CAT-25", 0, "no value"},
		{"large constraint", files{"a": pkg + channel + another(
			"buoy.v1.0.0", "1.0.0", "{type: olm.constraint, value: {failureMessage: "+
				strings.Repeat("x", catalog.MaxConstraintBytes)+"}}")}, "error R-CAT-25", 0, "R-RES-29"},
		{
			"rule of a constraint (R-RES-26)",
			files{"a": pkg + channel +
				another("buoy.v1.0.0", "1.0.0",
					"{type: olm.constraint, value: {cel: {rule: 'properties.exists(p, p.kind = 1)'}}}")},
			"error R-CAT-25",
			16, "line 1, column 29",
		},
		{
			"too many rules (R-RES-26)",
			files{"a": pkg + channel + another("buoy.v1.0.0", "1.0.0", manyRules()...)},
			"error R-CAT-25", 0, "more than 64 rules",
		},
		{
			"rule that is no condition (R-RES-26)",
			files{"a": pkg + channel + another("buoy.v1.0.0", "1.0.0",
				"{type: olm.constraint, value: {any: {constraints: [{cel: {rule: 1 + 1}}]}}}")},
			"error R-CAT-25", 16,
			"any[0].cel: cel rule \"1 + 1\" gives int",
		},
		{"bundle object", files{"a": pkg + channel + another(
			"buoy.v1.0.0", "1.0.0", "{type: olm.bundle.object, value: {data: '%%%'}}")}, "error R-CAT-25", 0, "base64"},
		{
			"no identity",
			files{"a": pkg + channel +
				"schema: olm.bundle\npackage: buoy\nname: buoy.v1.0.0\nimage: x\nproperties: []\n"},
			"error R-CAT-26", 0,
			"exactly one olm.package property, it has 0",
		},
		{
			"identity twice",
			files{"a": pkg + channel + another(
				"buoy.v1.0.0", "1.0.0", "{type: olm.package, value: {packageName: buoy, version: 1.0.0}}")},
			"error R-CAT-26", 0, "it has 2",
		},
		{"other identity", files{"a": pkg + channel + strings.ReplaceAll(
			oneBundle, "packageName: buoy", "packageName: other")}, "error R-CAT-26", 0, "belongs to \"buoy\""},
		{
			"leading v",
			files{"a": pkg + channel + another("buoy.v1.0.0", "v1.0.0")},
			"error R-CAT-26", 0,
			"no semantic version",
		},
		{
			"leading zero",
			files{"a": pkg + channel + another("buoy.v1.0.0", "1.00.0")},
			"error R-CAT-26", 0,
			"no semantic version",
		},
		{
			"long release",
			files{"a": pkg + channel + strings.ReplaceAll(
				oneBundle, "version: 1.0.0", "version: 1.0.0, release: '"+strings.Repeat("1", 21)+"'")},
			"error R-CAT-27",
			0, "20 characters",
		},
		{"release with zero", files{"a": pkg + channel + strings.ReplaceAll(
			oneBundle, "version: 1.0.0", "version: 1.0.0, release: '01'")}, "error R-CAT-27", 0, "pre-release"},
		{"image", files{"a": pkg + channel + strings.ReplaceAll(oneBundle, "registry.example.com/buoy:1",
			"'registry.example.com/Buoy:1'")}, "error R-CAT-28", 0, "pull specification"},
		{"related image", files{"a": pkg + channel + strings.ReplaceAll(
			oneBundle, "image: ", "relatedImages: [{image: 'a b'}]\nimage: ")}, "error R-CAT-28", 0, "related image"},
		{
			"bundle in no channel",
			files{"a": valid + another("buoy.v2.0.0", "2.0.0")},
			"error R-CAT-29", 18,
			"not found in any channel entries",
		},
		{
			"entry without bundle",
			files{"a": pkg + oneBundle +
				strings.ReplaceAll(channel, "[{name: buoy.v1.0.0}]",
					"[{name: buoy.v1.0.0, replaces: buoy.v0.9.0}, {name: buoy.v0.9.0}]")},
			"error R-CAT-30", 0,
			"no olm.bundle blobs found in package \"buoy\" for olm.channel entries of \"steady\": buoy.v0.9.0",
		},
		{
			"no default channel",
			files{"a": strings.ReplaceAll(valid, "defaultChannel: steady\n", "")},
			"error R-CAT-31",
			1, "name one of: steady",
		},
		{"unknown default channel", files{"a": strings.ReplaceAll(
			valid, "defaultChannel: steady", "defaultChannel: calm")}, "error R-CAT-31", 3, "name one of: steady"},
		{"no channel", files{"a": pkg}, "error R-CAT-33", 1, "no channel"},
		{
			"empty channel",
			files{"a": valid + "schema: olm.channel\npackage: buoy\nname: calm\n"},
			"error R-CAT-33", 16,
			"no entries",
		},
		{
			"same version",
			files{"a": pkg + oneBundle + another("buoy.v1", "1.0.0") +
				strings.ReplaceAll(channel, "[{name: buoy.v1.0.0}]",
					"[{name: buoy.v1.0.0, replaces: buoy.v1}, {name: buoy.v1}]")},
			"error R-CAT-34", 0,
			"duplicate versions found in bundles",
		},
		{"skips nothing", files{"a": strings.ReplaceAll(valid, "{name: buoy.v1.0.0}]",
			"{name: buoy.v1.0.0, skips: ['']}]")}, "error R-CAT-38", 0, "empty name"},
		{"skipRange", files{"a": strings.ReplaceAll(valid, "{name: buoy.v1.0.0}]",
			"{name: buoy.v1.0.0, skipRange: '<latest'}]")}, "error R-CAT-38", 0, "skipRange of entry"},
		{
			"no image",
			files{"a": strings.ReplaceAll(valid, "image: registry.example.com/buoy:1\n", "")},
			"error R-CAT-39", 0, "neither an image nor manifests",
		},
		{
			"name with release",
			files{"a": strings.ReplaceAll(valid, "version: 1.0.0", "version: 1.0.0, release: '2'")},
			"error R-CAT-40", 0, "buoy-v1.0.0-2",
		},
		{
			"bundle name",
			files{"a": strings.ReplaceAll(valid, "buoy.v1.0.0", "buoy-1")},
			"warning R-CAT-42", 0,
			"<operator>.v<version>",
		},
		{
			"deprecations of nobody",
			files{"a": valid, "b": "schema: olm.deprecations\npackage: other\n"},
			"error R-CAT-32", 2, "unknown package",
		},
		{"deprecations twice", files{
			"a": valid, "b": "schema: olm.deprecations\npackage: buoy\n",
			"c": "schema: olm.deprecations\npackage: buoy\n",
		}, "error R-CAT-32", 1, "more than one"},
		{"deprecation of a package by name", files{
			"a": valid,
			"b": "schema: olm.deprecations\npackage: buoy\nentries:\n- {reference: {schema: olm.package, name: " +
				"buoy}, message: old}\n",
		}, "error R-CAT-32", 4, "must have no name"},
		{"deprecation of an unknown channel", files{
			"a": valid,
			"b": "schema: olm.deprecations\npackage: buoy\nentries:\n- {reference: {schema: olm.channel, name: " +
				"calm}, message: old}\n",
		}, "error R-CAT-32", 4, "no such channel"},
		{"deprecation of an unknown bundle", files{
			"a": valid,
			"b": "schema: olm.deprecations\npackage: buoy\nentries:\n- {reference: {schema: olm.bundle, name: x}, " +
				"message: old}\n",
		}, "error R-CAT-32", 4, "no such bundle"},
		{"deprecation of another schema", files{
			"a": valid,
			"b": "schema: olm.deprecations\npackage: buoy\nentries:\n- {reference: {schema: olm.icon}, message: old}\n",
		}, "error R-CAT-32", 4, "must be olm.package"},
		{
			"deprecation without message",
			files{
				"a": valid,
				"b": "schema: olm.deprecations\npackage: buoy\nentries:\n- {reference: {schema: olm.package}}\n",
			},
			"error R-CAT-32", 4, "message is empty",
		},
		{
			"reserved schema",
			files{"a": valid + "schema: olm.icon\npackage: buoy\n"},
			"warning R-CAT-7", 16,
			"use a prefix that you own",
		},
		{"two metadata", files{"a": pkg + channel + another(
			"buoy.v1.0.0", "1.0.0", "{type: olm.csv.metadata, value: {displayName: A}}",
			"{type: olm.csv.metadata, value: {displayName: B}}")}, "warning R-CAT-18", 17, "keep one"},
		{
			"package without name",
			files{"a": valid + "schema: olm.package\ndefaultChannel: x\n"},
			"error R-CAT-20", 16,
			"DNS-1123",
		},
		{
			"long package name",
			files{"a": strings.ReplaceAll(valid, "buoy\n", strings.Repeat("b", 64)+"\n")},
			"error R-CAT-20", 2, "63",
		},
		{
			"channel that names no package",
			files{"a": valid +
				"schema: olm.channel\nname: c\nentries: [{name: buoy.v1.0.0}]\n"},
			"error R-CAT-22", 16,
			"names no package",
		},
		{
			"bundle that names no package",
			files{"a": valid + "schema: olm.bundle\nname: x\n"},
			"error R-CAT-24", 16,
			"names no package",
		},
		{"property of a package", files{"a": valid +
			"schema: olm.package\nname: tide\ndefaultChannel: x\nproperties:\n- {type: a, value: 1}\n- {type: '', " +
			"value: 1}\n"}, "error R-CAT-25", 21, "property 2 of package \"tide\""},
		{
			"property of a channel",
			files{"a": strings.ReplaceAll(
				valid, "name: steady\n", "name: steady\nproperties: [{type: a, value: null}]\n")},
			"error R-CAT-25", 8,
			"property 1 of channel \"steady\"",
		},
		{
			"identity of another form",
			files{"a": pkg + channel + another("buoy.v1.0.0", "[1]")},
			"error R-CAT-25", 15,
			"right form",
		},
		{
			"gvk version",
			files{"a": pkg + channel + another(
				"buoy.v1.0.0", "1.0.0", "{type: olm.gvk, value: {group: sea.test, version: V1, kind: Buoy}}")},
			"error R-CAT-25", 16, "not a DNS label",
		},
		{
			"gvk kind",
			files{"a": pkg + channel + another("buoy.v1.0.0", "1.0.0",
				"{type: olm.gvk, value: {group: sea.test, version: v1, kind: 'Buoy!'}}")},
			"error R-CAT-25", 16,
			"not a kind",
		},
		{"second of two", files{"a": pkg + channel + another(
			"buoy.v1.0.0", "1.0.0", "{type: olm.gvk, value: {group: sea.test, version: v1, kind: Buoy}}",
			"{type: olm.gvk, value: {group: sea.test, version: v1, kind: ''}}")}, "error R-CAT-25", 17, "not a kind"},
		{"long range", files{"a": pkg + channel + another("buoy.v1.0.0", "1.0.0",
			"{type: olm.package.required, value: {packageName: x, versionRange: '"+strings.Repeat(">1.0.0 ", 1000)+
				"'}}")}, "error R-CAT-25", 16, "longer than"},
		{
			"label",
			files{"a": pkg + channel + another("buoy.v1.0.0", "1.0.0", "{type: olm.label, value: {label: ''}}")},
			"error R-CAT-25", 16, "label is empty",
		},
		{"legacy channel", files{"a": pkg + channel + another(
			"buoy.v1.0.0", "1.0.0", "{type: olm.channel, value: steady}")}, "error R-CAT-25", 16, "right form"},
		{"metadata", files{"a": pkg + channel + another("buoy.v1.0.0", "1.0.0",
			"{type: olm.csv.metadata, value: {keywords: sea}}")}, "error R-CAT-25", 16, "right form"},
		{
			"platform version",
			files{"a": pkg + channel + another(
				"buoy.v1.0.0", "1.0.0", "{type: olm.maxOpenShiftVersion, value: '4.8.1'}")},
			"warning R-CAT-25", 16,
			"<major>.<minor>",
		},
		{
			"cut digest",
			files{"a": strings.ReplaceAll(valid, "buoy:1", "buoy@sha256:"+strings.Repeat("a", 40))},
			"error R-CAT-28", 13, "whole sha256 digest",
		},
		{"long repository", files{"a": strings.ReplaceAll(valid, "example.com/buoy:1",
			"example.com/"+strings.Repeat("a", 300))}, "error R-CAT-28", 13, "255"},
		{"release and build metadata", files{"a": strings.ReplaceAll(
			valid, "version: 1.0.0", "version: 1.0.0+b, release: '2'")}, "error R-CAT-40", 14, "build metadata"},
		{"empty identifier in a release", files{"a": strings.ReplaceAll(
			valid, "version: 1.0.0", "version: 1.0.0, release: 'a..b'")}, "error R-CAT-27", 14, "pre-release"},
		{"same version and release", files{"a": pkg + strings.ReplaceAll(channel, "[{name: buoy.v1.0.0}]",
			"[{name: buoy-v1.0.0-2, replaces: b.v1}, {name: b.v1}]") +
			strings.ReplaceAll(strings.ReplaceAll(oneBundle, "buoy.v1.0.0", "buoy-v1.0.0-2")+
				strings.ReplaceAll(oneBundle, "buoy.v1.0.0", "b.v1"), "version: 1.0.0",
				"version: 1.0.0, release: '2'")}, "error R-CAT-34", 20, "both have version 1.0.0 2"},
		{
			"bundle name without number",
			files{"a": strings.ReplaceAll(valid, "buoy.v1.0.0", "buoy.vega")},
			"warning R-CAT-42", 12, "<operator>.v<version>",
		},
		{
			"deprecations of no package",
			files{"a": valid, "b": "schema: olm.deprecations\nentries: []\n"},
			"error R-CAT-32", 1, "names no package",
		},
		{"deprecations of another form", files{
			"a": valid,
			"b": "schema: olm.deprecations\npackage: buoy\nentries: {}\n",
		}, "error R-CAT-32", 1, "right form"},
		{
			"deprecation without schema",
			files{
				"a": valid,
				"b": "schema: olm.deprecations\npackage: buoy\nentries:\n- {reference: {name: x}, message: old}\n",
			},
			"error R-CAT-32", 4, "has no schema",
		},
		{"deprecation of a channel without name", files{
			"a": valid,
			"b": "schema: olm.deprecations\npackage: buoy\nentries:\n- {reference: {schema: olm.channel}, message: " +
				"old}\n",
		}, "error R-CAT-32", 4, "must have a name"},
		{"deprecation of a bundle without name", files{
			"a": valid,
			"b": "schema: olm.deprecations\npackage: buoy\nentries:\n- {reference: {schema: olm.bundle}, message: " +
				"old}\n",
		}, "error R-CAT-32", 4, "must have a name"},
		{"deprecation twice", files{
			"a": valid,
			"b": "schema: olm.deprecations\npackage: buoy\nentries:\n- {reference: {schema: olm.package}, message: " +
				"a}\n- {reference: {schema: olm.package}, message: b}\n",
		}, "error R-CAT-32", 5, "occurs twice"},
	} {
		_, rule, _ := strings.Cut(c.rule, " ")
		broken[rule] = true
		t.Run(rule+" "+c.name, func(t *testing.T) {
			t.Parallel()
			got := loadFiles(t, c.in)
			for _, f := range got.Findings {
				if string(f.Severity)+" "+f.Rule == c.rule && strings.Contains(f.Message, c.says) &&
					(c.line == 0 || f.Line == c.line) {
					if f.File == "" || rule != "R-CAT-1" && (f.Line == 0 || f.Column == 0) {
						t.Errorf("the place is not told: %s", f)
					}
					return
				}
			}
			t.Errorf("want %s at line %d with %q, got:\n%s", c.rule, c.line, c.says, lines(got))
		})
	}
	for n := 20; n <= 43; n++ {
		if rule := fmt.Sprintf("R-CAT-%d", n); !broken[rule] && n != 41 { // R-CAT-41 accepts: see TestAccepted
			t.Errorf("no case breaks %s", rule)
		}
	}
}

func lines(c *load.Catalog) string {
	var s []string
	for _, f := range c.Findings {
		s = append(s, f.String())
	}
	return strings.Join(s, "\n")
}

// TestGraphRules proves R-CAT-35, 36 and 37 on small channels.
func TestGraphRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, entries, want string
	}{
		{"chain", "[{name: c, replaces: b}, {name: b, replaces: a}, {name: a}]", ""},
		{"virtual tail", "[{name: a, replaces: gone}]", ""},
		{"skip of an entry", "[{name: c, replaces: a, skips: [b]}, {name: b, replaces: a}, {name: a}]", ""},
		{"skip of a virtual node", "[{name: a, skips: [gone]}]", ""},
		{"two heads", "[{name: a}, {name: b}]", "error R-CAT-35"},
		{"no head", "[{name: a, replaces: b}, {name: b, replaces: a}]", "error R-CAT-35"},
		{"self", "[{name: a, replaces: a}]", "error R-CAT-35"},
		{"stranded", "[{name: c}, {name: a, replaces: b}, {name: b, replaces: a}]", "error R-CAT-36"},
		{
			"cycle below the head", "[{name: c, replaces: b}, {name: b, replaces: a}, {name: a, replaces: b}]",
			"error R-CAT-37",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := pkg + "schema: olm.channel\npackage: buoy\nname: steady\nentries: " + c.entries + "\n---\n"
			for i, n := range []string{"a", "b", "c"} {
				if strings.Contains(c.entries, "{name: "+n) {
					text += another(n, "1.0."+strconv.Itoa(i))
				}
			}
			var errors []string
			for _, r := range rulesOf(loadFiles(t, files{"a": text})) {
				if strings.HasPrefix(r, "error") {
					errors = append(errors, r)
				}
			}
			if got := strings.Join(errors, ", "); got != c.want {
				t.Errorf("findings %q, want %q", got, c.want)
			}
		})
	}
}

// TestAccepted proves what looks odd and is right all the same: by rule, and no finding.
func TestAccepted(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]files{
		"R-CAT-11 virtual nodes": {"a": strings.ReplaceAll(
			valid, "{name: buoy.v1.0.0}]", "{name: buoy.v1.0.0, replaces: buoy.v0.9.0, skips: [buoy.v0.9.1]}]")},
		"R-CAT-12 a bundle of two channels": {"a": valid + strings.ReplaceAll(channel, "steady", "fast")},
		"R-CAT-16 needs nobody here offers": {"a": pkg + channel +
			another("buoy.v1.0.0", "1.0.0",
				"{type: olm.gvk.required, value: {group: far.test, version: v1, kind: Far}}",
				"{type: olm.package.required, value: {packageName: far, versionRange: '>1.0.0 <2.0.0 !1.2.1 || 3.x'}}")},
		"R-CAT-17 API of the core group": {"a": pkg + channel +
			another("buoy.v1.0.0", "1.0.0", "{type: olm.gvk.required, value: {group: '', version: v1, kind: Pod}}")},
		"R-CAT-18 objects and metadata": {"a": pkg + channel +
			another("buoy.v1.0.0", "1.0.0", object(manifestCSV("buoy.v1.0.0", "1.0.0", "")),
				"{type: olm.csv.metadata, value: {displayName: A}}")},
		"R-CAT-25 opaque property": {"a": pkg + channel +
			another("buoy.v1.0.0", "1.0.0", "{type: olm.unheard, value: [1]}", "{type: olm.deprecated, value: {}}",
				"{type: olm.maxOpenShiftVersion, value: '4.20'}")},
		"R-CAT-26 pre-release and build": {"a": pkg + channel + another("buoy.v1.0.0", "1.0.0-rc.1+b.2")},
		"R-CAT-27 release": {"a": strings.ReplaceAll(
			strings.ReplaceAll(valid, "version: 1.0.0", "version: 1.0.0, release: 2.rc-1"), "buoy.v1.0.0",
			"buoy-v1.0.0-2.rc-1")},
		"R-CAT-28 related image without one": {"a": strings.ReplaceAll(
			valid, "image: ", "relatedImages: [{name: later, image: ''}, {image: 'localhost:5000/a_b/c--d:v1@sha256:"+
				strings.Repeat("0a", 32)+"'}]\nimage: ")},
		"R-CAT-34 other release": {"a": pkg + strings.ReplaceAll(
			channel, "[{name: buoy.v1.0.0}]", "[{name: buoy-v1.0.0-2, replaces: buoy.v1.0.0}, {name: buoy.v1.0.0}]") +
			oneBundle + strings.ReplaceAll(strings.ReplaceAll(
			strings.ReplaceAll(oneBundle, "version: 1.0.0", "version: 1.0.0, release: '2'"), "buoy:1\n", "buoy:1-2\n"),
			"buoy.v1.0.0", "buoy-v1.0.0-2")},
		"R-CAT-39 manifests and no image": {"a": strings.ReplaceAll(
			pkg+channel+another("buoy.v1.0.0", "1.0.0", object(manifestCSV("buoy.v1.0.0", "1.0.0", ""))),
			"image: registry.example.com/buoy:1.0.0\n", "")},
		"R-CAT-41 odd icon": {"a": strings.Replace(valid, "name: buoy\n",
			"name: buoy\nicon: {base64data: '%%', mediatype: text/plain}\n", 1)},
		"R-CAT-41 icon of nothing": {"a": strings.Replace(valid, "name: buoy\n", "name: buoy\nicon: {}\n", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c := loadFiles(t, in); len(c.Findings) > 0 || len(c.Packages) != 1 {
				t.Errorf("%d packages, findings:\n%s", len(c.Packages), lines(c))
			}
		})
	}
}

// TestRootOfACatalog proves R-CAT-43.
func TestRootOfACatalog(t *testing.T) {
	t.Parallel()
	below, err := fs.Sub(files{"a": valid}.fs(), "a")
	if err != nil {
		t.Fatal(err)
	}
	c, err := load.Load(below, load.Options{})
	if err != nil || strings.Join(rulesOf(c), " ") != "error R-CAT-43" {
		t.Errorf("%v, findings:\n%s", err, lines(c))
	}
}

// TestAllFindingsAtOnce proves that one load tells everything, errors first, in a stable order.
func TestAllFindingsAtOnce(t *testing.T) {
	t.Parallel()
	in := files{
		"z/catalog.yaml": "schema: olm.package\nname: z\n",
		"a/catalog.yaml": valid + another("loose", "3.0.0"),
		"b.yaml":         "x: [\n",
	}
	c := loadFiles(t, in)
	want := "a/catalog.yaml:18:7: error R-CAT-29: bundle \"loose\" not found in any channel entries; add it to a " +
		"channel or remove it\n"
	got := lines(c)
	if !strings.HasPrefix(got, want) || c.Findings.Errors() != 3 || len(c.Packages) != 0 {
		t.Errorf("findings:\n%s", got)
	}
	for range 5 {
		if again := lines(loadFiles(t, in)); again != got {
			t.Fatalf("another order:\n%s\nthan\n%s", again, got)
		}
	}
	if err := c.Findings.Err(); err == nil || !strings.Contains(err.Error(), "(and 2 more errors)") {
		t.Errorf("Err() = %v", err)
	}
}

// TestBoundedFindings proves that a report of endless errors ends and says so.
func TestBoundedFindings(t *testing.T) {
	t.Parallel()
	c := loadFiles(t, files{"a": valid + strings.Repeat("name: x\n---\n", catalog.MaxFindings+500)})
	last := c.Findings[len(c.Findings)-1]
	if len(c.Findings) != catalog.MaxFindings || !strings.Contains(last.Message, "501 more findings") {
		t.Errorf("%d findings, the last says %q", len(c.Findings), last.Message)
	}
}

// TestMixedFormats proves R-CAT-3 and R-CAT-5: one catalog written in many ways is the same package.
func TestMixedFormats(t *testing.T) {
	t.Parallel()
	jpkg := `{"schema":"olm.package","name":"buoy","defaultChannel":"steady"}`
	jchannel := `{"schema":"olm.channel","package":"buoy","name":"steady","entries":[{"name":"buoy.v1.0.0"}]}`
	jbundle := `{"schema":"olm.bundle","package":"buoy","name":"buoy.v1.0.0","image":"registry.example.com/buoy:1","properties":[{"type":"olm.package","value":{"packageName":"buoy","version":"1.0.0"}}]}`
	want := digestOf(t, files{"catalog.yaml": valid})
	for name, f := range map[string]files{
		"one JSON file":    {"x": jpkg + jchannel + "\n" + jbundle},
		"JSON with spaces": {"x": "\n  " + jpkg + "  \n\n" + jchannel + jbundle},
		"other order":      {"x.yml": oneBundle + pkg + channel},
		"three files":      {"a/b/c": pkg, "a/d": jchannel, "e": oneBundle},
		"JSON then YAML":   {"x": jpkg + "\n---\n" + channel + jbundle},
		"flow YAML": {"x": "{schema: olm.package, name: buoy, defaultChannel: steady}\n---\n" + channel +
			oneBundle},
		"byte order mark": {"x": "\xef\xbb\xbf" + valid},
		"windows lines":   {"x": strings.ReplaceAll(valid, "\n", "\r\n")},
		"comments and marks": {"x": "# c\n---\n# d\n---\n" + strings.ReplaceAll(valid, "---\n", "--- # e\n") +
			"...\n"},
		"content behind marks": {"x": pkg + channel +
			"--- {schema: olm.bundle, package: buoy, name: buoy.v1.0.0, image: 'registry.example.com/buoy:1', " +
			"properties: [{type: olm.package, value: {packageName: buoy, version: 1.0.0}}]}\n"},
		"keys in capitals": {"x": strings.ReplaceAll(strings.ReplaceAll(valid, "schema:", "Schema:"), "name: buoy\n",
			"NAME: buoy\n")},
		"anchors": {"x": strings.Replace(pkg, "buoy", "&n buoy", 1) + channel +
			strings.Replace(oneBundle, "package: buoy", "package: &p buoy", 1)},
	} {
		if got := digestOf(t, f); got != want {
			t.Errorf("%s: another package", name)
		}
	}
}

func digestOf(t *testing.T, f files) string {
	t.Helper()
	c := loadFiles(t, f)
	if err := c.Findings.Err(); err != nil || len(c.Packages) != 1 {
		t.Fatalf("%d packages, %v", len(c.Packages), err)
	}
	d, err := c.Packages[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	return string(d)
}

// TestIndexIgnore proves R-CAT-2: patterns, negation, directories, nesting, precedence.
func TestIndexIgnore(t *testing.T) {
	t.Parallel()
	prose := "Just text, no catalog."
	for name, f := range map[string]files{
		"only data": {
			".indexignore": "**/*\n!*.yaml\n!*.json\n**/src/*.yaml\n", "p/catalog.yaml": valid,
			"p/README": prose, "p/src/x.yaml": prose,
		},
		"a directory": {
			".indexignore": "docs/\n", "catalog.yaml": valid, "docs/a/b.md": prose,
			"x/docs/c": prose,
		},
		"anchored": {".indexignore": "/notes\n", "catalog.yaml": valid, "notes": prose},
		"nested":   {"p/.indexignore": "*.md\n", "p/catalog.yaml": valid, "p/q/x.md": prose},
		"nested takes back": {
			".indexignore": "*.yaml\n", "p/.indexignore": "!catalog.yaml\n", "p/catalog.yaml": valid,
			"x.yaml": prose,
		},
		"comment and blank": {".indexignore": "# notes\n\n*.md\n", "catalog.yaml": valid, "a.md": prose},
		"escaped":           {".indexignore": "\\#notes\n", "catalog.yaml": valid, "#notes": prose},
		"kubelet's own":     {"catalog.yaml": valid, "..2024_01_01/catalog.yaml": valid},
		"two stars between": {".indexignore": "a/**/z\n", "catalog.yaml": valid, "a/b/c/z": prose, "a/z": prose},
		"last pattern wins": {".indexignore": "!a.md\n*.md\n", "catalog.yaml": valid, "a.md": prose},
		"of a bundle folder": {
			".indexignore": "old/\n", "catalog.yaml": valid, "old/1.0.0/manifests/x": prose,
			"old/1.0.0/metadata/annotations.yaml": prose,
		},
	} {
		c := loadFiles(t, f)
		if err := c.Findings.Err(); err != nil || len(c.Packages) != 1 {
			t.Errorf("%s: %d packages, %v", name, len(c.Packages), err)
		}
	}
	c := loadFiles(t, files{"p/.indexignore": "*.md\n", "p/catalog.yaml": valid, "q/x.md": prose})
	if c.Findings.Errors() != 1 {
		t.Errorf("an ignore file held outside of its directory: %v", c.Findings)
	}
}

// TestUnknownSchemas proves R-CAT-8: blobs of other schemas are kept as they are and change nothing else.
func TestUnknownSchemas(t *testing.T) {
	t.Parallel()
	c := loadFiles(t, files{
		"a": valid +
			"schema: sea.example.com/chart\npackage: buoy\nname: north\nz: 1\na: [yes, 0x10, 1.50]\n",
		"b": "schema: sea.example.com/fleet\nships: 3\n",
	})
	if err := c.Findings.Err(); err != nil {
		t.Fatal(err)
	}
	if len(c.Blobs) != 2 || c.Blobs[0].Package != "" || c.Blobs[1].Package != "buoy" {
		t.Fatalf("blobs: %+v", c.Blobs)
	}
	if got, want := string(
		c.Blobs[1].Raw),
		`{"schema":"sea.example.com/chart","package":"buoy","name":"north","z":1,"a":[true,16,1.50]}`; got != want {
		t.Errorf("kept %s, want %s", got, want)
	}
	o := c.Packages[0].Other
	if len(o) != 1 || o[0].Schema != "sea.example.com/chart" || o[0].Name != "north" ||
		o[0].Digest != c.Blobs[1].Digest {
		t.Errorf("other: %+v", o)
	}
	digests := c.Digests()
	with, err1 := c.Revision(digests)
	c.Blobs = c.Blobs[1:]
	without, err2 := c.Revision(digests)
	if err1 != nil || err2 != nil || with == without {
		t.Errorf("a blob of no package must change the revision: %s, %s (%v, %v)", with, without, err1, err2)
	}
}

// TestHostile proves that bombs and depths meet a bound and a finding that names it (DESIGN D10).
func TestHostile(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 'b'; i <= 'k'; i++ {
		bomb += string(i) + ": &" + string(i) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(i-1)+",", 10),
			",") + "]\n"
	}
	deep := strings.Repeat("a/", catalog.MaxDirectoryDepth+2)
	for name, f := range map[string]files{
		"alias bomb": {"a": "schema: x.test\n" + bomb},
		"merge bomb": {"a": "schema: x.test\nm: &m {a: 1}\nn: {<<: [" +
			strings.TrimSuffix(strings.Repeat("*m,", 9), ",") + "]}\n" + bomb},
		"recursive alias": {"a": "schema: x.test\na: &a [*a]\n"},
		"deep YAML":       {"a": "schema: x.test\na: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000)},
		"deep JSON": {"a": `{"schema":"x.test","a":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) +
			"}"},
		"deep directories": {deep + "catalog.yaml": valid},
		"duplicate key":    {"a": "schema: x.test\nb: {c: 1, c: 2}\n"},
		"mapping as key":   {"a": "schema: x.test\n? {a: b}\n: c\n"},
		"not a number":     {"a": "schema: x.test\nb: .nan\n"},
		"binary":           {"a": "\x00\x01\x02\xff"},
		"bad UTF-8":        {"a": "schema: x.test\nb: \xff\xfe\n"},
	} {
		c := loadFiles(t, f)
		if c.Findings.Errors() == 0 || c.Findings[0].Rule != "R-CAT-1" {
			t.Errorf("%s: %v", name, c.Findings)
		}
	}
}

// manifestCSV is a ClusterServiceVersion as small as one can be.
func manifestCSV(name, version, more string) string {
	return "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: " + name +
		"}\nspec:\n  version: " + version + "\n  displayName: Buoy\n" + more +
		"  install: {strategy: deployment, spec: {deployments: [{name: buoy, spec: {template: {spec: {containers: " +
		"[{image: registry.example.com/op:1}]}}}}]}}\n"
}

func object(manifest string) string {
	return "{type: olm.bundle.object, value: {data: " + base64.StdEncoding.EncodeToString([]byte(manifest)) + "}}"
}

// TestBundleObjects proves that inline manifests become content and metadata (R-CAT-18, R-CAT-39, R-CAT-51, R-CAT-52).
func TestBundleObjects(t *testing.T) {
	t.Parallel()
	csv := manifestCSV("buoy.v1.0.0", "1.0.0",
		"  customresourcedefinitions: {owned: [{name: buoys.sea.test, version: v1, kind: Buoy}]}\n")
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: buoys.sea.test}\n"
	whole := strings.ReplaceAll(pkg+channel+another("buoy.v1.0.0", "1.0.0", object(csv), object(crd)),
		"image: registry.example.com/buoy:1\n", "")
	var kept []load.Content
	c, err := load.Load(files{"a": whole}.fs(), load.Options{
		Workers: 1, Keep: func(c load.Content) error { kept = append(kept, c); return nil },
	})
	if err != nil || c.Findings.Errors() > 0 || len(kept) != 1 {
		t.Fatalf("%v, %v, kept %d", err, c.Findings, len(kept))
	}
	b := c.Packages[0].Bundles[0]
	if b.Content != kept[0].Digest || !strings.Contains(string(b.Metadata), `"displayName":"Buoy"`) ||
		len(b.Properties) != 1 {
		t.Errorf("bundle %+v", b)
	}
	for name, text := range map[string]string{
		"error R-CAT-25": another("buoy.v1.0.0", "1.0.0", "{type: olm.bundle.object, value: {}}"),
		"warning R-CAT-51, warning R-CAT-52": another("buoy.v1.0.0", "1.0.0", object(csv), object(csv+"# other\n"),
			object(manifestCSV("second.v1", "1.0.0", ""))),
		"warning R-CAT-51": another("buoy.v1.0.0", "1.0.0", object(crd)),
		"warning R-CAT-52": another("buoy.v1.0.0", "1.0.0", object(csv)),
	} {
		c := loadFiles(t, files{"a": pkg + channel + text})
		if got := strings.Join(rulesOf(c), ", "); got != name {
			t.Errorf("findings %q, want %q", got, name)
		}
	}
}
