package compactjson_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/libs/internal/compactjson"
)

type word string

type inner struct {
	Name  string `json:"name"`
	Count int8   `json:"count,omitempty"`
}

type sample struct {
	Text   string            `json:"text"`
	Word   word              `json:"word,omitempty"`
	Number int64             `json:"number"`
	Is     bool              `json:"is,omitempty"`
	Time   time.Time         `json:"time"`
	One    inner             `json:"one"`
	Other  inner             `json:"other,omitzero"`
	Many   []inner           `json:"many,omitempty"`
	Words  []word            `json:"words"`
	Labels map[string]string `json:"labels,omitempty"`
	Plain  string
	Hidden string          `json:"-"`
	Raw    json.RawMessage `json:"raw,omitempty"`
	Last   string          `json:"last,omitempty"`
}

// Whatever is written, it is read to what encoding/json reads, or not at all.
func TestReadIsJSON(t *testing.T) {
	t.Parallel()
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z0-9./:_ -]{0,20}`)
		if rapid.IntRange(0, 3).Draw(t, "wild") == 0 {
			text = rapid.String()
		}
		words := rapid.SliceOf(rapid.Map(text, func(s string) word { return word(s) }))
		one := rapid.Custom(func(t *rapid.T) inner {
			return inner{
				text.Draw(t, "name"), rapid.Int8().Draw(t, "count"),
			}
		})
		s := sample{
			Text: text.Draw(t, "text"), Word: word(text.Draw(t, "word")), Number: rapid.Int64().Draw(t, "number"),
			Is: rapid.Bool().Draw(t, "is"), Time: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "seconds"), 0).UTC(),
			One: one.Draw(t, "one"), Other: one.Draw(t, "other"), Many: rapid.SliceOf(one).Draw(t, "many"),
			Words: words.Draw(t, "words"), Labels: rapid.MapOf(text, text).Draw(t, "labels"),
			Plain: text.Draw(t, "plain"), Last: text.Draw(t, "last"),
		}
		written, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if same(t, string(written)) {
			taken++
		}
	})
	if taken == 0 {
		t.Error("nothing was taken")
	}
}

// same compares with encoding/json where the text was taken.
func same(t interface{ Fatalf(string, ...any) }, text string) bool {
	var got, want sample
	if !compactjson.Read(text, &got) {
		return false
	}
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatalf("%s was taken, and is no JSON: %v", text, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s\n(-json +compact):\n%s", text, diff)
	}
	return true
}

// What encoding/json does not write is left to it.
func TestForms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{}`:                                   true,
		`{"text":"a","number":-12}`:            true,
		`{"text":"a","number":0}`:              true,
		`{"one":{"name":"a"}}`:                 true,
		`{"words":[],"labels":{}}`:             true,
		`{"words":["a","b"]}`:                  true,
		`{"time":"2026-11-20T09:30:15Z"}`:      true,
		``:                                     false,
		`{`:                                    false,
		`{"text":"a"`:                          false,
		`{"text":"a",}`:                        false,
		`{"text":"a"}}`:                        false,
		`{ "text":"a"}`:                        false,
		`{"text": "a"}`:                        false,
		`{"Text":"a"}`:                         false, // encoding/json takes it for text
		`{"number":1,"text":"a"}`:              false, // another order
		`{"text":"a","text":"b"}`:              false,
		`{"text":"a","unknown":1}`:             false,
		`{"text":null}`:                        false,
		`{"text":"\u003ca\n\"ä"}`:              true,
		`{"text":"\x"}`:                        false,
		`{"text":"\"}`:                         false,
		`{"text":"a` + "\n" + `"}`:             false,
		`{"text":"ä"}`:                         true,
		`{"other":{"name":"a"}}`:               true,
		`{"text":1}`:                           false,
		`{"number":"1"}`:                       false,
		`{"number":01}`:                        false,
		`{"number":1.0}`:                       false,
		`{"number":1e3}`:                       false,
		`{"number":-}`:                         false,
		`{"number":9223372036854775808}`:       false,
		`{"one":{"name":"a","count":128}}`:     false,
		`{"is":1}`:                             false,
		`{"time":"\u0032026-11-20T09:30:15Z"}`: false,
		`{"time":"yesterday"}`:                 false,
		`{"words":["a",]}`:                     false,
		`{"words":["a" ]}`:                     false,
		`{"labels":{"a":"b",}}`:                false,
		`{"labels":{"a":1}}`:                   false,
		`{"raw":1}`:                            false,
		`{"Hidden":"a"}`:                       false,
	} {
		if got := same(t, text); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// Types whose form this package does not know are left alone.
func TestTypes(t *testing.T) {
	t.Parallel()
	type tree struct {
		Of []tree `json:"of"`
	}
	type embedded struct{ inner }
	for text, into := range map[string]any{
		`{"of":[{"of":[]}]}`: &tree{},
		`{"name":"a"}`:       &embedded{},
		`{"A":"YQ=="}`:       &struct{ A []byte }{},
		`{"A":1.5}`:          &struct{ A float64 }{},
		`{"a":"1"}`: &struct {
			A int `json:"a,string"`
		}{},
	} {
		if compactjson.Read(text, into) {
			t.Errorf("%s was read into a %T", text, into)
		}
	}
}

// FuzzRead holds any text against encoding/json.
func FuzzRead(f *testing.F) {
	f.Add(
		`{"text":"a","word":"b","number":-1,"is":true,"time":"2026-11-20T09:30:15Z","one":{"name":"a","count":1},"many":[{"name":"b"}],"words":["c"],"labels":{"d":"e"},"Plain":"f","last":"g"}`)
	f.Fuzz(func(t *testing.T, text string) { same(t, text) })
}
