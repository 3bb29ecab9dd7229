package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// strictCasing makes huma compare the names of fields as JSON does, to the letter. By its default "NAME" passes as
// name without its value being checked, and is then decoded over it.
var strictCasing = sync.OnceFunc(func() { huma.ValidateStrictCasing = true }) // huma has no other switch

// strictJSON is JSON in which nothing is dropped: no field stands twice, nothing follows the document, all is text.
var strictJSON = huma.Format{
	Marshal: huma.DefaultJSONFormat.Marshal,
	Unmarshal: func(data []byte, into any) error {
		if _, first := into.(*any); first { // huma reads a body twice: for its check, then into the type
			if err := checkJSON(data); err != nil {
				return err
			}
		}
		return json.Unmarshal(data, into)
	},
}

// place is where a reader of JSON stands: in an object with its keys so far, or in a list.
type place struct {
	keys  map[string]bool // nil in a list
	key   string          // that was read last
	open  bool            // the key's value comes next
	index int             // of the element of a list
}

// jsonReader checks a document token by token.
type jsonReader struct {
	*json.Decoder

	places []place
}

// checkJSON refuses what encoding/json reads without a word: keys that stand twice, of which it takes the last, bytes
// that are no UTF-8, and U+0000, which a database does not keep. What is no JSON at all is left to its reader.
func checkJSON(data []byte) error {
	if !utf8.Valid(data) {
		return errors.New("body: the body is not valid UTF-8")
	}
	r := jsonReader{Decoder: json.NewDecoder(bytes.NewReader(data))}
	r.UseNumber()
	for {
		token, err := r.Token()
		if err != nil {
			return nil //nolint:nilerr // the end, or what json.Unmarshal reports better
		}
		if err := r.take(token); err != nil {
			return err
		}
	}
}

func (r *jsonReader) take(token json.Token) error {
	top := len(r.places) - 1
	if s, ok := token.(string); ok && strings.ContainsRune(s, 0) {
		return fmt.Errorf("%s: the text holds U+0000, which is not taken", r.where())
	}
	if key, ok := token.(string); ok && top >= 0 && r.places[top].keys != nil && !r.places[top].open {
		p := &r.places[top]
		p.key, p.open = key, true
		if p.keys[key] {
			return fmt.Errorf("%s: the field stands twice", r.where())
		}
		p.keys[key] = true
		return nil
	}
	switch token {
	case json.Delim('{'):
		r.places = append(r.places, place{keys: map[string]bool{}})
		return nil
	case json.Delim('['):
		r.places = append(r.places, place{})
		return nil
	case json.Delim('}'), json.Delim(']'):
		r.places = r.places[:top]
		top--
	}
	if top >= 0 { // a value ended
		r.places[top].open = false
		r.places[top].index++
	}
	return nil
}

// where writes the place as huma does: body.targetNamespaces[0].
func (r *jsonReader) where() string {
	var b strings.Builder
	b.WriteString("body")
	for _, p := range r.places {
		switch {
		case p.keys == nil:
			b.WriteString("[" + strconv.Itoa(p.index) + "]")
		case p.open:
			b.WriteString("." + shortened(p.key))
		}
	}
	return b.String()
}
