package printer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	exact "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/libs/spelling"
)

// Formats of --output. Those of kubectl with templates have theirs behind an equals sign.
const (
	FormatTable = ""
	FormatWide  = "wide"
	FormatJSON  = "json"
	FormatYAML  = "yaml"
	FormatName  = "name"

	formatJSONPath   = "jsonpath"
	formatGoTemplate = "go-template"
	formatColumns    = "custom-columns"
	// fromFile is what the names of formats end with that have their template in a file.
	fromFile = "-file"
)

const formatsHelp = "json, yaml, wide, name, jsonpath=TEMPLATE, go-template=TEMPLATE or custom-columns=SPEC " +
	"(with -file=PATH for those in files)"

// formatNames are all formats, as completion offers them.
func formatNames() []string {
	names := []string{FormatJSON, FormatYAML, FormatWide, FormatName}
	for _, t := range []string{formatJSONPath, formatGoTemplate, formatColumns} {
		names = append(names, t+"=", t+fromFile+"=")
	}
	return names
}

// form is --output, once it was read.
type form struct {
	read     string // the format that this is of
	template func(w io.Writer, document any) error
	columns  []customColumn
}

// DocumentFlag is --output of what has no table.
func DocumentFlag(c *cobra.Command, o *Output) {
	c.Flags().StringVarP(&o.Format, "output", "o", "", "json, yaml, jsonpath=TEMPLATE or go-template=TEMPLATE")
}

// CheckDocument refuses formats of which a document has none.
func CheckDocument(o Output) error {
	if o.Format == FormatWide || o.Format == FormatName {
		return command.Usagef("output format %q: want json, yaml, jsonpath=TEMPLATE or go-template=TEMPLATE", o.Format)
	}
	return o.Check()
}

// Check reads the format, and refuses an unknown one.
func (o *Output) Check() error {
	switch o.Format {
	case FormatTable, FormatWide, FormatJSON, FormatYAML, FormatName, o.form.read:
		return nil
	}
	name, text, given := strings.Cut(o.Format, "=")
	base, file := strings.CutSuffix(name, fromFile)
	if !slices.Contains([]string{formatJSONPath, formatGoTemplate, formatColumns}, base) {
		known := formatNames()
		for i := range known {
			known[i] = strings.TrimSuffix(known[i], "=")
		}
		return command.Usagef("output format %q%s: want %s", o.Format,
			spelling.DidYouMean(name, known), formatsHelp)
	}
	if !given || text == "" {
		return command.Usagef("output format %s needs a template: -o %s=...", name, name)
	}
	if file {
		raw, err := os.ReadFile(text)
		if err != nil {
			return err
		}
		text = string(raw)
	}
	f := form{read: o.Format}
	var err error
	switch base {
	case formatJSONPath:
		f.template, err = jsonPath(text)
	case formatGoTemplate:
		f.template, err = goTemplate(text)
	default:
		f.columns, err = readColumns(text, file)
	}
	if err != nil {
		return command.Usagef("output format %s: %w", name, err)
	}
	o.form = f
	return nil
}

// jsonPath reads a template as kubectl has it: {.items[*].name}. What an object does not have is empty.
func jsonPath(text string) (func(io.Writer, any) error, error) {
	p, err := printers.NewJSONPathPrinter(text)
	if err != nil {
		return nil, err
	}
	p.AllowMissingKeys(true)
	// The printer's own method would answer a mistake with the whole document.
	return func(w io.Writer, document any) error { return p.Execute(w, document) }, nil
}

// goTemplate reads a template of text/template.
func goTemplate(text string) (func(io.Writer, any) error, error) {
	p, err := printers.NewGoTemplatePrinter([]byte(text))
	if err != nil {
		return nil, err
	}
	p.AllowMissingKeys(true)
	return func(w io.Writer, document any) error {
		object, ok := document.(map[string]any)
		if !ok {
			return fmt.Errorf("the result is no object, but %T", document)
		}
		if err := p.PrintObj(&unstructured.Unstructured{Object: object}, w); err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n") // the whole document follows
			return errors.New(first)
		}
		return nil
	}, nil
}

// writeTemplate writes a document as the template says; where that fails nothing is written.
func (o *Output) writeTemplate(w io.Writer, document any) error {
	v, err := asJSON(document)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := o.form.template(&b, v); err != nil {
		return command.Usagef("output format: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// asJSON is a value as a reader of its JSON has it, with whole numbers.
func asJSON(v any) (any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out any
	err = exact.Unmarshal(raw, &out)
	return out, err
}
