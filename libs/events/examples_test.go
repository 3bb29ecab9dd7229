package events_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

var wantType = regexp.MustCompile(`^[a-z]+(\.[a-z]+(-[a-z]+)*)\.v[1-9]\d*$`)

// DESIGN §3: types are named once, in past tense, with a version.
func TestRegistry(t *testing.T) {
	t.Parallel()
	seen := map[events.Type]bool{}
	for _, d := range events.All() {
		if seen[d.Type] {
			t.Errorf("%s is registered twice", d.Type)
		}
		seen[d.Type] = true
		if !wantType.MatchString(string(d.Type)) {
			t.Errorf("%s: want family.what-happened.vN", d.Type)
		}
		if d.Doc == "" || !strings.HasSuffix(d.Doc, ".") {
			t.Errorf("%s: want one sentence of documentation, have %q", d.Type, d.Doc)
		}
		if got, ok := events.Lookup(d.Type); !ok || got.Type != d.Type {
			t.Errorf("Lookup(%s) = %+v, %v", d.Type, got, ok)
		}
	}
	if _, ok := events.Lookup("subscription.created.v0"); ok {
		t.Error("Lookup found a type that does not exist")
	}
}

// DESIGN §3: every version has a stored example that decodes for ever, and nothing of it is lost.
func TestEveryTypeHasAnExample(t *testing.T) {
	t.Parallel()
	var want []string
	for _, d := range events.All() {
		want = append(want, filepath.Join("testdata", string(d.Type)+".json"))
		t.Run(string(d.Type), func(t *testing.T) {
			t.Parallel()
			checkExample(t, d)
		})
	}
	have, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("examples without a type, or types without an example:\nhave %v\nwant %v", have, want)
	}
}

func checkExample(t *testing.T, d events.Definition) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", string(d.Type)+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var e events.Envelope
	strict(t, raw, &e)
	if e.Type != d.Type || e.Source != "/chandler/"+string(d.Writer) || e.SpecVersion != "1.0" {
		t.Errorf("envelope says type %s from %s, the registry %s from %s", e.Type, e.Source, d.Type, d.Writer)
	}
	stream, err := events.ParseStreamID(e.Stream)
	if err != nil || stream.Kind != d.Kind {
		t.Errorf("stream %s (%v), want one of kind %s", e.Stream, err, d.Kind)
	}
	strict(t, e.Data, reflect.New(reflect.TypeOf(d.Zero())).Interface())
	payload, err := events.Decode(e)
	if err != nil {
		t.Fatal(err)
	}
	if e.Data, err = json.Marshal(payload); err != nil {
		t.Fatal(err)
	}
	again, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if again = append(again, '\n'); !bytes.Equal(again, raw) {
		t.Errorf("decoded and encoded again, the example differs:\n%s\nfrom the file:\n%s", again, raw)
	}
	for _, path := range missing(reflect.ValueOf(payload), "data") {
		t.Errorf("the example shows no value of %s", path)
	}
	for _, path := range missing(reflect.ValueOf(e), "envelope") {
		t.Errorf("the example shows no value of %s", path)
	}
}

func strict(t *testing.T, raw []byte, into any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		t.Fatalf("%T: %v", into, err)
	}
}

// missing lists fields that are zero; in a list, a field counts as shown when any item shows it.
func missing(v reflect.Value, path string) []string {
	switch {
	case v.Kind() == reflect.Struct && v.NumField() > 0 &&
		v.Type().PkgPath() == reflect.TypeFor[events.Envelope]().PkgPath():
		var all []string
		for i := range v.NumField() {
			all = append(all, missing(v.Field(i), path+"."+v.Type().Field(i).Name)...)
		}
		return all
	case v.Kind() == reflect.Slice && v.Len() > 0:
		all := missing(v.Index(0), path+"[]")
		for i := 1; i < v.Len(); i++ {
			shown := missing(v.Index(i), path+"[]")
			all = slices.DeleteFunc(all, func(p string) bool { return !slices.Contains(shown, p) })
		}
		return all
	case v.Kind() == reflect.Struct && v.NumField() == 0, !v.IsZero():
		return nil
	default:
		return []string{path}
	}
}

// DESIGN D2: no free text in events. A code is one word, an identifier or a digest: never a sentence.
func TestExamplesHoldNoSentences(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var e events.Envelope
		strict(t, raw, &e)
		var compact bytes.Buffer
		if err := json.Compact(&compact, e.Data); err != nil {
			t.Fatal(err)
		}
		if contains(compact.String(), " ") {
			t.Errorf("%s holds a sentence: %s", f, compact.String())
		}
	}
}
