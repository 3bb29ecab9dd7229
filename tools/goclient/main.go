// Command goclient generates libs/client of the OpenAPI document: types by oapi-codegen as they are, methods by the
// template beside this file, which is much shorter than its own. It runs in its own module, outside the workspace.
//
//	go run . -document ../../services/gateway/openapi-3.0.yaml -o ../../libs/client/api.gen.go
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/oapi-codegen/oapi-codegen/v2/pkg/codegen"
)

// outMode is of files that everybody may read.
const outMode = 0o644

//go:embed operations.tmpl
var operations string

//go:embed imports.tmpl
var imports string

//go:embed params.tmpl
var params string

// empty is a template of nothing: oapi-codegen takes one line for an address, and white space for no template.
const empty = "{{\"\"}}\n"

func main() {
	document := flag.String("document", "openapi-3.0.yaml", "the document, in OpenAPI 3.0")
	out := flag.String("o", "api.gen.go", "the Go file")
	flag.Parse()
	if err := run(*document, *out); err != nil {
		fmt.Fprintln(os.Stderr, "goclient:", err)
		os.Exit(1)
	}
}

func run(document, out string) error {
	doc, err := openapi3.NewLoader().LoadFromFile(document)
	if err != nil {
		return err
	}
	for _, path := range doc.Paths.InMatchingOrder() {
		for method, op := range doc.Paths.Value(path).Operations() {
			if err := prepare(op); err != nil {
				return fmt.Errorf("%s %s: %w", method, path, err)
			}
		}
	}
	said := map[string]bool{}
	for _, path := range doc.Paths.Map() {
		for _, op := range path.Operations() {
			if op.RequestBody != nil {
				for _, content := range op.RequestBody.Value.Content {
					reach(content.Schema, said)
				}
			}
		}
	}
	for name, s := range doc.Components.Schemas {
		schema(s, said[name])
	}
	// What every request may answer is the hand-made half's; nothing of it is generated.
	doc.Components.Responses, doc.Components.Parameters, doc.Components.SecuritySchemes = nil, nil, nil
	doc.Security = nil
	code, err := codegen.Generate(doc, codegen.Configuration{
		PackageName: "client", Compatibility: codegen.CompatibilityOptions{AlwaysPrefixEnumValues: true},
		Generate: codegen.GenerateOptions{Models: true, Client: true},
		OutputOptions: codegen.OutputOptions{
			SkipPrune: true, SkipEnumValidate: true, NameNormalizer: "ToCamelCaseWithInitialisms",
			AdditionalInitialisms: []string{"CSV", "CRD"}, PreferSkipOptionalPointerOnContainerTypes: true,
			UserTemplates: map[string]string{
				"client.tmpl": operations, "imports.tmpl": imports, "param-types.tmpl": params,
				"client-with-responses.tmpl": empty, "request-bodies.tmpl": empty,
			},
		},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(out, []byte(code), outMode)
}

// call is one way to ask for an operation: a method of the client.
type call struct {
	Suffix string // of its name
	Result string // Go type of the answer; "" where there is none
	Accept string // media type that is asked for
	Text   bool   // the answer is text
	Bytes  bool   // the answer is bytes of a media type of their own
	Stream bool   // the answer does not end
	DryRun bool   // it is asked what would come of it
	Item   string // Go type of the elements of a list that has pages
}

// prepare leaves of an operation what methods are made of, and writes beside it which methods.
func prepare(op *openapi3.Operation) error {
	var own openapi3.Parameters
	cursor, preview := false, false
	calls, err := callsOf(op)
	if err != nil {
		return err
	}
	for _, c := range calls {
		preview = preview || c.DryRun
	}
	watched := op.Parameters.GetByInAndName("query", "watch") != nil
	for _, p := range op.Parameters {
		switch {
		case p.Value.In == "header", p.Value.Name == "fields", p.Value.Name == "dryRun" && preview:
			continue // an Option, or a method of its own
		case watched && slices.Contains([]string{"watch", "since", "ticket"}, p.Value.Name):
			continue // what Watch adds to the request of a list
		case p.Value.Name == "cursor":
			cursor = true
		}
		parameter(p.Value)
		own = append(own, p)
	}
	op.Parameters = own
	if !cursor {
		for i := range calls {
			calls[i].Item = ""
		}
	}
	if op.Extensions == nil {
		op.Extensions = map[string]any{}
	}
	op.Extensions["x-calls"] = calls
	// Types of answers are those of components.
	op.Responses = openapi3.NewResponses(openapi3.WithStatus(204, &openapi3.ResponseRef{
		Value: openapi3.NewResponse().WithDescription("No Content"),
	}))
	if op.RequestBody != nil {
		for media, content := range op.RequestBody.Value.Content {
			if content.Schema == nil { // any bytes
				op.RequestBody = nil
				break
			}
			if media == "application/merge-patch+json" {
				content.Schema = openapi3.NewSchemaRef("", openapi3.NewObjectSchema().WithAnyAdditionalProperties())
			}
		}
	}
	return nil
}

// callsOf reads from the answers of success which methods an operation has.
func callsOf(op *openapi3.Operation) ([]call, error) {
	var calls []call
	waits := op.Parameters.GetByInAndName("header", "Prefer") != nil
	for _, status := range []string{"200", "201", "202", "204"} {
		answer := op.Responses.Value(status)
		if answer == nil || status == "202" && waits {
			continue // the operation, for who sends Prefer; WaitOperation reads it by its id
		}
		if len(answer.Value.Content) == 0 {
			calls = append(calls, call{Accept: "application/json"})
		}
		for _, media := range slices.Sorted(keys(answer.Value.Content)) {
			calls = append(calls, callOf(media, answer.Value.Content[media].Schema)...)
		}
	}
	// Where an operation answers one thing or another, the other one is what comes of a dry run.
	others := 0
	for i := range calls {
		if calls[i].Result == "Preview" || calls[i].Result == "RemovalPlan" {
			calls[i].DryRun = len(calls) > 1
		}
		switch {
		case calls[i].DryRun:
			calls[i].Suffix = "DryRun"
		case calls[i].Text:
			calls[i].Suffix = "Text"
		default:
			others++
		}
	}
	if icon := slices.IndexFunc(calls, func(c call) bool { return c.Bytes }); icon >= 0 {
		return calls[icon : icon+1], nil
	}
	if list := slices.IndexFunc(calls, func(c call) bool { return c.Item != "" }); list >= 0 && others > 1 {
		return calls[list : list+1], nil // its stream is what Watch reads
	}
	if others != 1 {
		return nil, fmt.Errorf("%d kinds of answers, of which a method can have one: %+v", others, calls)
	}
	return calls, nil
}

func callOf(media string, schema *openapi3.SchemaRef) []call {
	switch {
	case media == "text/event-stream":
		return []call{{Result: "io.ReadCloser", Accept: media, Stream: true}}
	case media == "text/plain":
		return []call{{Result: "string", Accept: media, Text: true}}
	case media != "application/json":
		return []call{{Result: "Content", Accept: "*/*", Bytes: true}}
	case len(schema.Value.AnyOf) > 0:
		var all []call
		for _, one := range schema.Value.AnyOf {
			all = append(all, callOf(media, one)...)
		}
		return all
	default:
		return []call{{Result: nameOf(schema), Accept: media, Item: itemOf(schema.Value)}}
	}
}

func nameOf(ref *openapi3.SchemaRef) string {
	return codegen.SchemaNameToTypeName(ref.Ref[strings.LastIndex(ref.Ref, "/")+1:])
}

// itemOf is the type of the elements of a list that has pages.
func itemOf(page *openapi3.Schema) string {
	items, next := page.Properties["items"], page.Properties["next"]
	if items == nil || next == nil || items.Value.Items == nil || items.Value.Items.Ref == "" {
		return ""
	}
	return nameOf(items.Value.Items)
}

func keys(m openapi3.Content) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

const (
	noPointer = "x-go-type-skip-optional-pointer"
	goType    = "x-go-type"
)

func extend(s *openapi3.Schema, key string, value any) {
	if s.Extensions == nil {
		s.Extensions = map[string]any{}
	}
	s.Extensions[key] = value
}

// parameter has its zero value where it is not given.
func parameter(p *openapi3.Parameter) {
	if p.Extensions == nil {
		p.Extensions = map[string]any{}
	}
	p.Extensions[noPointer] = true
	if s := p.Schema.Value; s.Format == "uuid" {
		s.Format = "" // a string of the caller, which the gateway checks
	}
	extend(p.Schema.Value, noPointer, true)
}

// reach collects the names of the schemas of which requests consist.
func reach(ref *openapi3.SchemaRef, into map[string]bool) {
	if ref == nil {
		return
	}
	if ref.Ref != "" {
		name := ref.Ref[strings.LastIndex(ref.Ref, "/")+1:]
		if into[name] {
			return
		}
		into[name] = true
	}
	reach(ref.Value.Items, into)
	reach(ref.Value.AdditionalProperties.Schema, into)
	for _, property := range ref.Value.Properties {
		reach(property, into)
	}
	for _, part := range ref.Value.AllOf {
		reach(part, into)
	}
}

// schema says what of a schema is a pointer: things, times, and in what is said to the gateway what may be false or 0
// otherwise than by being absent. JSON whose form is another's stays as it came.
func schema(ref *openapi3.SchemaRef, said bool) {
	if ref == nil || ref.Ref != "" {
		return
	}
	s := ref.Value
	switch {
	case s.Type == nil && len(s.AllOf) == 0:
		extend(s, goType, "json.RawMessage")
		extend(s, noPointer, true)
	case s.Type.Is("array") || s.Type.Is("object") && len(s.Properties) == 0:
		s.Nullable = false // null is read as empty
		extend(s, noPointer, true)
	case s.Type.Is("string") && s.Format != "date-time":
		s.Format = ""
		extend(s, noPointer, true)
	case !said && (s.Type.Is("boolean") || s.Type.Is("integer") || s.Type.Is("number")):
		extend(s, noPointer, true)
	}
	schema(s.Items, said)
	for _, property := range s.Properties {
		schema(property, said)
	}
	schema(s.AdditionalProperties.Schema, said)
}
