package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// errEnough ends the look at a file whose first documents say all.
var errEnough = errors.New("enough")

// Manifest reads a file of a bundle as OLM's tools read it: the first document that holds something, by the rules of
// sigs.k8s.io/yaml, which takes what Kubernetes takes. What an author should fix and OLM takes all the same is in
// notes:
//
//	a key that occurs twice in one mapping   the last one counts, with all that is below it
//	further documents in the file            they are passed over
//	what only that library reads             as it reads it
//	y, n, merge keys, keys that are no text  as YAML 1.1 has them
//
// An error is a file that OLM cannot read either (it passes such files over), or one that meets a limit
// (Error.IsLimit). A file that holds nothing gives nothing.
func (p *Parser) Manifest(data []byte, l Limits) (object []byte, notes []*Error, err error) {
	doubtful := false
	first := func(c Chunk) error {
		if object != nil {
			notes = append(notes, &Error{
				Line: c.line, Column: c.column,
				Message: "the file holds more than one document; only the first one is used: put the others into " +
					"files of their own",
			})
			return errEnough
		}
		v, perr := p.Parse(c, l)
		if perr != nil {
			return perr
		}
		if faults := p.Faults(); len(faults) > 0 {
			notes = append(notes, faults...)
			return faults[0]
		}
		if v.Exists() {
			object, doubtful = bytes.Clone(v.Canonical()), p.builder.Tree().Doubtful()
		}
		return nil
	}
	read := func() error {
		if c, ok := whole(data, l); ok { // as nearly all are
			if err := first(c); err == nil || !c.json {
				return err
			}
			object, notes, doubtful = nil, nil, false // several objects, perhaps
		}
		return Split(bytes.NewReader(data), l, func(c Chunk) error {
			defer c.Release()
			return first(c)
		})
	}
	err = read()
	if err == nil || errors.Is(err, errEnough) {
		if doubtful {
			object, notes = p.decide(data, l, object, notes)
		}
		return object, notes, nil
	}
	why, ok := errors.AsType[*Error](err)
	if !ok || why.IsLimit() {
		return nil, nil, err
	}
	if object != nil { // only what stands behind the first document is wrong
		return object, append(notes, &Error{
			Line: why.Line, Column: why.Column,
			Message: "what stands behind the first document is not used: " + why.Message,
		}), nil
	}
	return p.despite(data, l, why, notes)
}

// despite reads with the library what this package does not read because of why.
func (p *Parser) despite(data []byte, l Limits, why *Error, notes []*Error) ([]byte, []*Error, error) {
	object, err := p.library(data, l)
	if err != nil {
		if err.IsLimit() {
			return nil, nil, err
		}
		return nil, nil, why
	}
	for _, n := range notes {
		n.Limit = ""
		n.Message += "; the last one counts"
	}
	if len(notes) == 0 {
		notes = []*Error{{Line: why.Line, Column: why.Column, Message: "read as OLM reads it, although: " +
			why.Message}}
	}
	return object, notes, nil
}

// decide has the library read what it may read in another way.
func (p *Parser) decide(data []byte, l Limits, object []byte, notes []*Error) ([]byte, []*Error) {
	theirs, err := p.library(data, l)
	if err != nil || bytes.Equal(theirs, object) {
		return object, notes
	}
	const message = "plain words such as y and n, keys that are no text, and merge keys are read as YAML 1.1 has " +
		"them; quote them, or write them out"
	return theirs, append(notes, &Error{Line: 1, Message: message})
}

// libraryBuffer is how much of a file is looked at to tell JSON from YAML.
const libraryBuffer = 4096

// library reads the first object of a file with the library that OLM and Kubernetes read manifests with.
func (p *Parser) library(data []byte, l Limits) ([]byte, *Error) {
	if e := tooMuch(data, l.Nodes); e != nil {
		return nil, e
	}
	if len(data) > smallLibraryBytes {
		large.Lock()
		defer large.Unlock()
	}
	unreadable := func(err error) *Error { return &Error{Line: 1, Message: err.Error()} }
	dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), libraryBuffer)
	for range l.Documents {
		var raw json.RawMessage
		if err := dec.Decode(&raw); errors.Is(err, io.EOF) {
			return nil, nil
		} else if err != nil {
			return nil, unreadable(err)
		}
		var v any
		exact := json.NewDecoder(bytes.NewReader(raw))
		exact.UseNumber()
		if err := exact.Decode(&v); err != nil && !errors.Is(err, io.EOF) {
			return nil, unreadable(err)
		}
		if v == nil {
			continue
		}
		once, err := json.Marshal(v) // each key once, the last one
		if err != nil {
			return nil, unreadable(err)
		}
		p.builder.Reset(l.tree())
		if e := p.builder.Read(once); e != nil {
			return nil, e
		}
		if faults := p.Faults(); len(faults) > 0 {
			return nil, faults[0]
		}
		return bytes.Clone(p.builder.Tree().Root().Canonical()), nil
	}
	return nil, &Error{Line: 1, Limit: "documents", Message: fmt.Sprintf("more than %d documents in one file",
		l.Documents)}
}
