package jsontree_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gowebpki/jcs"

	"github.com/chandler-fleet/chandler/libs/internal/jsontree"
)

var wide = jsontree.Limits{Depth: 20, Values: 1000, Bytes: 1 << 20}

func read(text string, l jsontree.Limits) (*jsontree.Tree, *jsontree.Error) {
	var b jsontree.Builder
	b.Reset(l)
	err := b.Read([]byte(text))
	return b.Tree(), err
}

// TestCanonical holds the canonical form of numbers, keys and strings (DESIGN, settled details: Digests).
func TestCanonical(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"b":1,"a":{"d":2,"c":[{"z":1,"y":2}]}}`:    `{"a":{"c":[{"y":2,"z":1}],"d":2},"b":1}`,
		"[ 1 ,\n2.0 , -0, 1e3, 0.1E1, 1e-7 ]":        `[1,2,0,1000,1,1e-7]`,
		`[9223372036854775807,-9223372036854775808]`: `[9223372036854775807,-9223372036854775808]`,
		`[18446744073709551615,9007199254740993]`:    `[18446744073709551615,9007199254740993]`,
		`[18446744073709551616,1234567890123456.0]`:  `[18446744073709552000,1234567890123456]`,
		`"\u0041\/\u001f\ud83d\ude00"`:               `"A/\u001f😀"`,
		`{"\ue000":1,"😀":2}`:                         `{"😀":2,"` + "\ue000" + `":1}`,
		`{"a\"b":1,"a":2,"a!":3}`:                    `{"a":2,"a!":3,"a\"b":1}`,
		`[]`:                                         `[]`, `{}`: `{}`, `{"a":[],"A":{}}`: `{"A":{},"a":[]}`,
		`null`: `null`, `[true,false]`: `[true,false]`,
	} {
		tree, err := read(in, wide)
		if err != nil || len(tree.Faults()) > 0 {
			t.Errorf("%s: %v, %v", in, err, tree.Faults())
			continue
		}
		if got := string(tree.Root().Canonical()); got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}

// TestRefused proves that what no reader means in one way is refused by name, with its place.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in           string
		limit        string
		line, column int
	}{
		{"{\"a\": 1,\n \"é\": 2, \"a\": 3}", jsontree.LimitKeys, 2, 10},
		{`{"a":{"b":1,"c":2,"d":3,"b":1}}`, jsontree.LimitKeys, 1, 25},
		{`{"a":1,"\u0061":1}`, jsontree.LimitKeys, 1, 8},
		{"[1,\n1e999]", jsontree.LimitNumbers, 2, 1},
		{"[" + strings.Repeat("9", 400) + "]", jsontree.LimitNumbers, 1, 2},
		{"\"\xff\"", "utf-8", 1, 2},
		{`"\ud800"`, "utf-8", 1, 8},
		{`"\ud800\u0041"`, "utf-8", 1, 14},
		{strings.Repeat("[", 30) + strings.Repeat("]", 30), "depth", 1, 22},
		{"[" + strings.Repeat("1,", 1000) + "1]", "nodes", 1, 2000},
	} {
		tree, err := read(c.in, wide)
		if err == nil && len(tree.Faults()) > 0 {
			err = tree.Faults()[0]
		}
		if err == nil || err.Limit != c.limit || err.Line != c.line || err.Column != c.column {
			t.Errorf("%.40s: %+v, want %s at %d:%d", c.in, err, c.limit, c.line, c.column)
		}
	}
	if _, err := read(`["`+strings.Repeat("x", 100)+`",1]`,
		jsontree.Limits{Depth: 5, Values: 5, Bytes: 50}); err == nil || err.Limit != "expanded-bytes" {
		t.Errorf("a long document: %v", err)
	}
}

// TestValues proves that every part is found with its place and text.
func TestValues(t *testing.T) {
	t.Parallel()
	tree, err := read("{\"A\": \"x\\n\",\n \"é\": [1, {\"k\": null}], \"a\": true, \"b\": 1.5}", wide)
	if err != nil {
		t.Fatal(err)
	}
	root := tree.Root()
	if v := root.Child("a"); v.Kind() != jsontree.Bool || v.Line() != 2 || v.Column() != 30 {
		t.Errorf("a: %v at %d:%d", v.Kind(), v.Line(), v.Column())
	}
	if v := root.Child("B"); string(v.JSON()) != "1.5" || v.Kind() != jsontree.Number || v.Text() != "" {
		t.Errorf("B: %s", v.JSON())
	}
	if v := root.Child("A"); v.Text() != "x\n" {
		t.Errorf("A: %q", v.Text())
	} else if _, ok := v.Plain(); ok {
		t.Error("a string with an escape is plain")
	}
	var got []string
	for v := range root.Child("é").Items() {
		got = append(got, string(v.JSON()))
	}
	if diff := cmp.Diff([]string{"1", `{"k":null}`}, got); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	if root.Child("none").Exists() || root.Child("A").Child("x").Exists() ||
		(&jsontree.Tree{}).Root().Kind() != jsontree.Nothing {
		t.Error("nothing exists")
	}
	for range root.Child("A").Items() {
		t.Error("a string has items")
	}
}

// TestBuilderIsReused proves that a document leaves nothing behind for the next one.
func TestBuilderIsReused(t *testing.T) {
	t.Parallel()
	var b jsontree.Builder
	for _, text := range []string{`{"a":1,"a":2}`, `["` + strings.Repeat("x", 5<<20) + `"]`, `[1e999]`, `{"b":[1]}`} {
		b.Reset(jsontree.Limits{Depth: 5, Values: 10, Bytes: 1 << 24})
		if err := b.Read([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if got := string(b.Tree().Root().JSON()); got != `{"b":[1]}` || len(b.Tree().Faults()) > 0 {
		t.Errorf("%s, %v", got, b.Tree().Faults())
	}
}

// FuzzRead proves that the reader takes what encoding/json takes, means the same, and that the canonical
// form is that of RFC 8785 but for long integers, and a fixed point.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,-2.5e3,"\u00e9\n"],"":{}}`, `[{"b":1,"a":null},true]`, `{"a":1,"a":2}`,
		`"\ud800"`, ` 01`, `[1,]`, "\"\xc3\x28\"", `-`, `1e5`, `[9007199254740993]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := read(string(data), jsontree.Limits{Depth: 500, Values: 1 << 20, Bytes: 1 << 24})
		if err != nil {
			if json.Valid(data) && err.Limit != "utf-8" && err.Limit != "depth" {
				t.Fatalf("%q is refused: %v", data, err)
			}
			return
		}
		var want, got any
		if json.Unmarshal(data, &want) != nil && len(tree.Faults()) == 0 {
			t.Fatalf("%q is accepted", data)
		}
		if len(tree.Faults()) > 0 {
			return
		}
		canonical := tree.Root().Canonical()
		for _, form := range []json.RawMessage{tree.Root().JSON(), canonical} {
			if e := json.Unmarshal(form, &got); e != nil || !cmp.Equal(want, got) {
				t.Fatalf("%q means %v as %s (%v)", data, got, form, e)
			}
		}
		again, err := read(string(canonical), jsontree.Limits{Depth: 500, Values: 1 << 20, Bytes: 1 << 24})
		if err != nil || !bytes.Equal(again.Root().Canonical(), canonical) {
			t.Fatalf("%q is no fixed point: %s, %v", data, canonical, err)
		}
		if rfc, e := jcs.Transform(data); e == nil && !bytes.Equal(rfc, canonical) && !longInteger(data) {
			t.Fatalf("%q is %s, RFC 8785 says %s", data, canonical, rfc)
		}
	})
}

// longInteger reports whether a text has as many digits in a row as an integer beyond 2^53.
func longInteger(data []byte) bool {
	n := 0
	for _, c := range data {
		n++
		if c < '0' || c > '9' {
			n = 0
		}
		if n > 15 {
			return true
		}
	}
	return false
}
