package explain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
	"github.com/chandler-fleet/chandler/libs/spelling"
)

// schemaNames are the names in the API document of kinds that have another one there.
var schemaNames = map[string]string{"Role": "AccessRole", "Package": "PackageSummary"}

const refPrefix = "#/components/schemas/"

// explainFields says which fields a kind has, or a field of it, in the words of the gateway's API document.
func explainFields(ctx context.Context, a *command.Env, path string) error {
	parts := strings.Split(path, ".")
	kind, err := kinds.Find(a, parts[0])
	if err != nil {
		return err
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	all, err := c.Schemas(ctx)
	if err != nil {
		return err
	}
	text, err := fields(all, kind.Document, parts[1:])
	if err != nil {
		return err
	}
	return a.Say("%s", text)
}

// fields describes a kind, or the field of it that a path names. It reads no more than the schemas.
func fields(all map[string]*client.Schema, kind string, path []string) (string, error) {
	name := kind
	if other, ok := schemaNames[kind]; ok {
		name = other
	}
	at := &client.Schema{Ref: refPrefix + name}
	if all[name] == nil {
		return "", command.Refusedf("the API document of this gateway does not describe %s", kind)
	}
	description := ""
	for i, field := range path {
		in := inner(all, at)
		next, ok := in.Properties[field]
		if !ok {
			return "", command.Usagef("%s has no field %q%s", strings.Join(append([]string{kind}, path[:i]...), "."),
				field, spelling.DidYouMean(field, slices.Collect(maps.Keys(in.Properties))))
		}
		at, description = next, next.Description
	}
	t := printer.Text{Width: printer.Narrow}
	t.Put("KIND:     ", kind)
	t.Put("VERSION:  ", olm.Own)
	if len(path) > 0 {
		t.Put("FIELD:    ", path[len(path)-1]+" <"+typeOf(at)+">")
	}
	in := inner(all, at)
	if description = printer.Or(description, in.Description); description != "" {
		t.Heading("DESCRIPTION:")
		t.Put("    ", description)
	}
	if len(at.Enum) > 0 {
		t.Heading("ONE OF:")
		for _, value := range at.Enum {
			t.Put("    ", fmt.Sprint(value))
		}
	}
	if len(in.Properties) > 0 {
		t.Heading("FIELDS:")
	}
	for _, field := range slices.Sorted(maps.Keys(in.Properties)) {
		s := in.Properties[field]
		line := field + " <" + typeOf(s) + ">"
		if slices.Contains(in.Required, field) {
			line += " -required-"
		}
		t.Put("  ", line)
		if text := printer.Or(s.Description, inner(all, s).Description); text != "" {
			t.Put("      ", text)
		}
	}
	return t.String(), nil
}

// inner is what holds the fields of a value: what a reference names, or the items of a list.
func inner(all map[string]*client.Schema, s *client.Schema) *client.Schema {
	for range len(all) { // a document that refers to itself ends nowhere
		switch {
		case s.Ref != "" && all[strings.TrimPrefix(s.Ref, refPrefix)] != nil:
			s = all[strings.TrimPrefix(s.Ref, refPrefix)]
		case s.Items != nil:
			s = s.Items
		default:
			return s
		}
	}
	return s
}

// typeOf is the type of a value in kubectl's words: []Object, map[string]string.
func typeOf(s *client.Schema) string {
	if s.Ref != "" {
		return strings.TrimPrefix(s.Ref, refPrefix)
	}
	if s.Items != nil {
		return "[]" + typeOf(s.Items)
	}
	word := fmt.Sprint(s.Type)
	if list, ok := s.Type.([]any); ok && len(list) > 0 { // of 3.1, with null
		word = fmt.Sprint(list[0])
	}
	if values, ok := s.Additional.(map[string]any); ok && word == "object" {
		return fmt.Sprintf("map[string]%v", values["type"])
	}
	if s.Type == nil {
		return "Object"
	}
	return word
}
