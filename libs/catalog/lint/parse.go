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

// place is where something is in a bundle.
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

// parsed is a bundle as the checks read it. Nothing changes it after parse.
type parsed struct {
	files       Bundle
	objects     []object
	annotations map[string]string
	annotated   docs.Value        // the mapping of annotations
	broken      []catalog.Finding // what cannot be read
	csvs        []object
	csvObject   object
	csv         *bundle.CSV // nil where there is not exactly one that can be read
}

// Bounds of one file, far above what real bundles have; a bundle as a whole is bounded by its reader.
func limits() docs.Limits {
	return docs.Limits{
		FileBytes: catalog.MaxBundleBytes, DocumentBytes: catalog.MaxDocumentBytes, Documents: catalog.MaxBundleFiles,
		Depth: catalog.MaxNesting, Nodes: catalog.MaxNodes,
	}
}

// parse reads all files. What cannot be read is left out of what later checks see, and reported by structureCheck.
func parse(b Bundle) *parsed {
	p := &parsed{files: b, annotations: map[string]string{}}
	for _, f := range b.Manifests {
		p.each(f, func(v docs.Value) {
			o := object{file: f.Name, value: v}
			o.apiVersion, o.kind, o.name = v.Child("apiVersion").Text(), v.Child("kind").Text(),
				v.Child("metadata").Child("name").Text()
			if o.apiVersion == "" || o.kind == "" || o.name == "" {
				p.unreadable(f.Name, v.Line(), v.Column(), "an object needs apiVersion, kind and metadata.name")
				return
			}
			p.objects = append(p.objects, o)
		})
	}
	for _, f := range b.Metadata {
		if f.Name != fileAnnotations {
			p.each(f, func(docs.Value) {})
			continue
		}
		p.each(f, func(v docs.Value) {
			p.annotated = v.Child("annotations")
			for k, value := range p.annotated.Members() {
				p.annotations[k.Text()] = value.Text()
			}
		})
	}
	for _, o := range p.objects {
		if o.kind == bundle.KindCSV {
			p.csvs = append(p.csvs, o)
		}
	}
	if len(p.csvs) != 1 {
		return p
	}
	p.csvObject = p.csvs[0]
	csv, err := bundle.ParseCSV(p.csvObject.value.JSON())
	if err != nil {
		at := p.csvObject.at("spec")
		p.unreadable(at.file, at.line, at.column, err.Error())
		return p
	}
	p.csv = &csv
	return p
}

// each calls take for every document of a file.
func (p *parsed) each(f File, take func(docs.Value)) {
	err := docs.Split(bytes.NewReader(f.Data), limits(), func(c docs.Chunk) error {
		var parser docs.Parser // one for each document: its values are kept
		v, perr := parser.Parse(c, limits())
		if perr != nil {
			p.unreadable(f.Name, perr.Line, perr.Column, perr.Message)
			return nil //nolint:nilerr // it is noted; the other documents go on
		}
		for _, fault := range parser.Faults() {
			p.unreadable(f.Name, fault.Line, fault.Column, fault.Message)
		}
		if v.Exists() && len(parser.Faults()) == 0 {
			take(v)
		}
		return nil
	})
	if e, ok := errors.AsType[*docs.Error](err); ok {
		p.unreadable(f.Name, e.Line, e.Column, e.Message)
	} else if err != nil {
		p.unreadable(f.Name, 0, 0, err.Error())
	}
}

// unreadable notes what cannot be read.
func (p *parsed) unreadable(file string, line, column int, why string) {
	p.broken = append(p.broken, catalog.Finding{File: file, Line: line, Column: column, Message: why})
}

// annotationAt is the place of an annotation of the CSV.
func (p *parsed) annotationAt(key string) place {
	return p.csvObject.at("metadata", "annotations", key)
}
