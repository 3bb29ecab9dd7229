package unknown_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/chandler-fleet/chandler/libs/unknown"
)

type inner struct {
	Kept string `json:"kept"`
	Gone string `json:"gone,omitempty"`
}

type document struct {
	Name    string           `json:"name"`
	Count   int              `json:"count,omitempty"`
	Inner   inner            `json:"inner,omitzero"`
	Pointer *inner           `json:"pointer,omitempty"`
	List    []inner          `json:"list,omitempty"`
	Map     map[string]inner `json:"map,omitempty"`
	Unknown unknown.Fields   `json:"-"`
}

func (d *document) UnmarshalJSON(data []byte) (err error) {
	type plain document
	d.Unknown, err = unknown.Read(data, (*plain)(d))
	return err
}

func (d document) MarshalJSON() ([]byte, error) {
	type plain document
	return unknown.Write(plain(d), d.Unknown)
}

// A document of a newer release is read, changed and written by this one: what this one does not know is as it was,
// what it knows is as it is now, and what it has taken out stays out.
func TestNewerMembersAreKept(t *testing.T) {
	t.Parallel()
	change := func(d *document) { d.Name, d.Count, d.Inner.Gone = "new", 0, "" }
	for name, c := range map[string]struct{ was, want string }{
		"nothing newer": {`{"name":"old","count":3}`, `{"name":"new"}`},
		"a member":      {`{"name":"old","count":3,"later":{"a":[1,2]}}`, `{"name":"new","later":{"a":[1,2]}}`},
		"in a struct": {
			`{"name":"old","inner":{"kept":"k","gone":"g","later":1}}`, `{"name":"new","inner":{"kept":"k","later":1}}`,
		},
		"in a struct that is left out": {
			`{"name":"old","inner":{"kept":"","gone":"g","later":1}}`, `{"name":"new","inner":{"later":1}}`,
		},
		"behind a pointer": {
			`{"name":"old","pointer":{"kept":"k","later":1}}`, `{"name":"new","pointer":{"kept":"k","later":1}}`,
		},
		"another case":      {`{"NAME":"old","Later":null}`, `{"name":"new","Later":null}`},
		"its own name":      {`{"name":"old","Unknown":1}`, `{"name":"new","Unknown":1}`},
		"a number of size":  {`{"name":"old","later":12345678901234567890}`, `{"name":"new","later":12345678901234567890}`},
		"elements of lists": {`{"name":"old","list":[{"kept":"k","later":1}]}`, `{"name":"new","list":[{"kept":"k"}]}`},
	} {
		var d document
		if err := json.Unmarshal([]byte(c.was), &d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		copied := d // as folds copy their state
		change(&copied)
		got, err := json.Marshal(copied)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !same(t, string(got), c.want) {
			t.Errorf("%s: %s became %s, want %s", name, c.was, got, c.want)
		}
	}
	var d document
	for _, bad := range []string{`{"name":1}`, `[]`, `{"name":"x"`} {
		if err := json.Unmarshal([]byte(bad), &d); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

// same compares JSON whatever the order of members, and numbers by their text.
func same(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y map[string]json.RawMessage
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil || len(x) != len(y) {
		return false
	}
	for k, v := range x {
		if string(v) == string(y[k]) {
			continue
		}
		var p, q any
		if json.Unmarshal(v, &p) != nil || y[k] == nil || json.Unmarshal(y[k], &q) != nil || !reflect.DeepEqual(p, q) {
			return false
		}
	}
	return true
}
