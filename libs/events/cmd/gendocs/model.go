package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
)

// comments holds the doc comment of each struct ("Name") and of each field ("Name.Field").
type comments map[string]string

func readComments(dir string) (comments, error) {
	files, err := fs.Glob(os.DirFS(dir), "*.go")
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s holds no Go files", dir)
	}
	found := comments{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				found.add(g)
			}
		}
	}
	return found, nil
}

func (c comments) add(g *ast.GenDecl) {
	for _, s := range g.Specs {
		spec, ok := s.(*ast.TypeSpec)
		if !ok {
			continue
		}
		c[spec.Name.Name] = sentence(g.Doc, spec.Doc)
		if st, ok := spec.Type.(*ast.StructType); ok {
			c.addFields(spec.Name.Name, st)
		}
	}
}

func (c comments) addFields(name string, st *ast.StructType) {
	for _, f := range st.Fields.List {
		for _, n := range f.Names {
			c[name+"."+n.Name] = sentence(f.Doc, f.Comment)
		}
	}
}

func sentence(groups ...*ast.CommentGroup) string {
	var parts []string
	for _, g := range groups {
		if t := strings.Join(strings.Fields(g.Text()), " "); t != "" {
			parts = append(parts, t)
		}
	}
	return strings.Join(parts, " ")
}

// field is one member of a payload or of a struct within it.
type field struct {
	name     string // in JSON
	doc      string
	optional bool
	typ      typ
}

// typ is the shape of a value: a scalar of JSON, a list or map of one, or a named struct.
type typ struct {
	json   string // string, integer, boolean, array, object
	format string // date-time, or ""
	elem   *typ   // of an array, or of a map's values
	named  string // of a struct
}

func (t typ) String() string {
	switch {
	case t.named != "":
		return t.named
	case t.json == "array":
		return "list of " + t.elem.String()
	case t.json == "object" && t.elem != nil:
		return "map of string to " + t.elem.String()
	case t.format != "":
		return t.format
	default:
		return t.json
	}
}

type structure struct {
	name   string
	doc    string
	fields []field
}

type model struct {
	definitions []events.Definition
	payloads    map[events.Type]structure
	envelope    structure
	shared      []structure // structs inside payloads, by name
}

func describe(c comments) model {
	seen := map[string]structure{}
	m := model{definitions: events.All(), payloads: map[events.Type]structure{}}
	for _, d := range m.definitions {
		m.payloads[d.Type] = describeStruct(c, reflect.TypeOf(d.Zero()), seen)
	}
	m.envelope = describeStruct(c, reflect.TypeFor[events.Envelope](), seen)
	for _, s := range seen {
		m.shared = append(m.shared, s)
	}
	slices.SortFunc(m.shared, func(a, b structure) int { return strings.Compare(a.name, b.name) })
	return m
}

// describeStruct adds the structs named by t's fields to seen, not t itself.
func describeStruct(c comments, t reflect.Type, seen map[string]structure) structure {
	s := structure{name: t.Name(), doc: c[t.Name()]}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		s.fields = append(s.fields, field{
			name: name, doc: c[t.Name()+"."+f.Name], optional: strings.Contains(options, "omitempty"),
			typ: describeType(c, f.Type, seen),
		})
	}
	return s
}

func describeType(c comments, t reflect.Type, seen map[string]structure) typ {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return typ{json: "string", format: "date-time"}
	case t == reflect.TypeFor[json.RawMessage]():
		return typ{json: "object"}
	}
	switch t.Kind() {
	case reflect.Slice:
		e := describeType(c, t.Elem(), seen)
		return typ{json: "array", elem: &e}
	case reflect.Map:
		e := describeType(c, t.Elem(), seen)
		return typ{json: "object", elem: &e}
	case reflect.Struct:
		if _, ok := seen[t.Name()]; !ok {
			seen[t.Name()] = structure{} // a struct may hold itself
			seen[t.Name()] = describeStruct(c, t, seen)
		}
		return typ{json: "object", named: t.Name()}
	case reflect.Bool:
		return typ{json: "boolean"}
	case reflect.String:
		return typ{json: "string"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return typ{json: "integer"}
	default:
		// Floats have no canonical form, and pointers make patches of facts.
		panic(fmt.Sprintf("gendocs: no event may hold a %s", t))
	}
}
