package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/docs"
)

// place is where something stands in a bundle.
type place struct {
	file         string
	line, column int
}

// object is one manifest.
type object struct {
	file                   string
	value                  docs.Value
	apiVersion, kind, name string
}

// at is the place of a value of the object; steps are those of docs.Spot.
func (o object) at(path ...string) place {
	line, column := docs.Place(o.value, path...)
	return place{o.file, line, column}
}

func (o object) decode(into any) error { return json.Unmarshal(o.value.JSON(), into) }

// nth is the step to an element of a list.
func nth(i int) string { return "#" + strconv.Itoa(i) }

// linter holds a bundle that is being looked at.
type linter struct {
	in          Bundle
	platforms   map[string][]string
	objects     []object
	annotations map[string]string
	annotated   docs.Value // the mapping of annotations
	broken      []catalog.Finding
	csvObject   object
	csv         *bundle.CSV // nil where there is not exactly one that can be read
	csvs        []object
	findings    catalog.Findings
}

// Bounds of one file, far above what real bundles have; a bundle as a whole is bounded by its reader.
func limits() docs.Limits {
	return docs.Limits{
		FileBytes: catalog.MaxBundleBytes, DocumentBytes: catalog.MaxDocumentBytes, Documents: catalog.MaxBundleFiles,
		Depth: catalog.MaxNesting, Nodes: catalog.MaxNodes,
	}
}

// parse reads all files. What cannot be read is left out of what later checks see, and told by unreadable.
func (l *linter) parse() {
	l.annotations = map[string]string{}
	for _, f := range l.in.Manifests {
		l.each(f, func(v docs.Value) {
			o := object{file: f.Name, value: v}
			o.apiVersion, o.kind, o.name = v.Child("apiVersion").Text(), v.Child("kind").Text(),
				v.Child("metadata").Child("name").Text()
			if o.apiVersion == "" || o.kind == "" || o.name == "" {
				l.sick(f.Name, v.Line(), v.Column(), "an object needs apiVersion, kind and metadata.name")
				return
			}
			l.objects = append(l.objects, o)
		})
	}
	for _, f := range l.in.Metadata {
		if f.Name != fileAnnotations {
			l.each(f, func(docs.Value) {})
			continue
		}
		l.each(f, func(v docs.Value) {
			l.annotated = v.Child("annotations")
			for k, value := range l.annotated.Members() {
				l.annotations[k.Text()] = value.Text()
			}
		})
	}
	for _, o := range l.objects {
		if o.kind == bundle.KindCSV {
			l.csvs = append(l.csvs, o)
		}
	}
	if len(l.csvs) != 1 {
		return
	}
	l.csvObject = l.csvs[0]
	csv, err := bundle.ParseCSV(l.csvObject.value.JSON())
	if err != nil {
		at := l.csvObject.at("spec")
		l.sick(at.file, at.line, at.column, err.Error())
		return
	}
	l.csv = &csv
}

// each calls take for every document of a file.
func (l *linter) each(f File, take func(docs.Value)) {
	err := docs.Split(bytes.NewReader(f.Data), limits(), func(c docs.Chunk) error {
		var p docs.Parser // one for each document: its values are kept
		v, perr := p.Parse(c, limits())
		if perr != nil {
			l.sick(f.Name, perr.Line, perr.Column, perr.Message)
			return nil //nolint:nilerr // it is told; the other documents go on
		}
		for _, fault := range p.Faults() {
			l.sick(f.Name, fault.Line, fault.Column, fault.Message)
		}
		if v.Exists() && len(p.Faults()) == 0 {
			take(v)
		}
		return nil
	})
	if e, ok := errors.AsType[*docs.Error](err); ok {
		l.sick(f.Name, e.Line, e.Column, e.Message)
	} else if err != nil {
		l.sick(f.Name, 0, 0, err.Error())
	}
}

func (l *linter) sick(file string, line, column int, why string) {
	l.broken = append(l.broken, catalog.Finding{File: file, Line: line, Column: column, Message: why})
}
