package load

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/docs"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/value"
	"github.com/chandler-fleet/chandler/libs/catalog/validate"
	"github.com/chandler-fleet/chandler/libs/internal/jsontree"
)

// isTemplate reports whether a schema is one of templates, which are reserved but no content (R-CAT-10).
func isTemplate(schema string) bool {
	return strings.HasPrefix(schema, "olm.template.") || schema == "olm.semver" || schema == "olm.composite"
}

// blob is one document with its envelope read (§1.2). Its value is gone once the next one is parsed.
type blob struct {
	validate.Place
	schema, pkg, name string
	value             docs.Value
}

// readBlob reads the envelope: the keys schema, package and name are recognised in any case, must be
// strings and may occur once (R-CAT-6).
func readBlob(file string, v docs.Value) (blob, *catalog.Finding) {
	b := blob{Place: validate.Place{File: file, Line: v.Line(), Column: v.Column()}, value: v}
	if v.Kind() != jsontree.Object {
		f := b.Finding(catalog.SeverityError, "R-CAT-6", "",
			"a catalog document must be an object with a schema field; exclude the file in .indexignore if it is no "+
				"catalog content")
		return b, &f
	}
	seen := map[string]string{}
	for k, v := range v.Members() {
		written := k.Text()
		key := strings.ToLower(written)
		field := map[string]*string{"schema": &b.schema, "package": &b.pkg, "name": &b.name}[key]
		if field == nil {
			continue
		}
		at := validate.Place{File: file, Line: k.Line(), Column: k.Column()}
		if first, twice := seen[key]; twice {
			f := at.Finding(catalog.SeverityError, "R-CAT-6", b.pkg, "duplicate keys for key %q: %q and %q; keep one",
				key, first, written)
			return b, &f
		}
		seen[key] = written
		if v.Kind() != jsontree.String {
			f := at.Finding(catalog.SeverityError, "R-CAT-6", b.pkg,
				"the value of %q must be a string; put it in quotes", written)
			return b, &f
		}
		*field = v.Text()
		if key == "package" && *field == "" {
			f := at.Finding(catalog.SeverityError, "R-CAT-6", "",
				"package must not be empty; name the package or leave the key out")
			return b, &f
		}
	}
	if b.schema == "" && v.Child("packageName").Exists() && v.Child("channels").Exists() {
		f := b.Finding(catalog.SeverityError, "R-CAT-76", "",
			"this is a package manifest, but no directories of its versions stand beside it; put them there, or "+
				"write a file-based catalog")
		return b, &f
	}
	if b.schema == "" {
		f := b.Finding(catalog.SeverityError, "R-CAT-6", b.pkg,
			"the document is missing root schema field; add it, or exclude the file in .indexignore if it is no "+
				"catalog content")
		return b, &f
	}
	return b, nil
}

// owner is the package that the blob belongs to: its own name for olm.package.
func (b blob) owner() string {
	if b.schema == catalog.SchemaPackage {
		return b.name
	}
	return b.pkg
}

// at returns the place of a value, or the blob's own where there is none.
func (b blob) at(v docs.Value) validate.Place {
	if !v.Exists() {
		return b.Place
	}
	return validate.Place{File: b.File, Line: v.Line(), Column: v.Column()}
}

// decode reads a value into a typed one by the rules of Go's JSON decoder.
func (b blob) decode(v docs.Value, into any, rule, what string) *catalog.Finding {
	if err := json.Unmarshal(v.JSON(), into); err != nil {
		f := b.at(v).Finding(catalog.SeverityError, rule, b.owner(), "%s does not have the right form: %v", what,
			strings.TrimPrefix(err.Error(), "json: "))
		return &f
	}
	return nil
}

// faulty returns what forbids to use a document that can be read: keys that occur twice, numbers out of
// range (R-CAT-1, DESIGN D10), and names that nobody can store or show (R-CAT-6).
func (b blob) faulty(faults []*docs.Error) []catalog.Finding {
	var out []catalog.Finding
	for _, field := range []struct{ key, text string }{{"schema", b.schema}, {"package", b.pkg}, {"name", b.name}} {
		if why := value.Name(field.text, catalog.MaxBlobNameBytes); why != "" {
			out = append(out, b.In(field.key).Finding(catalog.SeverityError, "R-CAT-6", b.owner(),
				"the value %.40q of %s %s", field.text, field.key, why))
		}
	}
	for _, e := range faults {
		at := validate.Place{File: b.File, Line: e.Line, Column: e.Column}
		out = append(out, at.Finding(catalog.SeverityError, "R-CAT-1", b.owner(),
			"%s; fix it, the document cannot be used as it is", e.Text()))
	}
	return out
}

// manifest reads the base64 text of an olm.bundle.object property.
func manifest(v docs.Value) ([]byte, bool) {
	data := v.Child("data")
	text, plain := data.Plain()
	if !plain {
		b, err := decodeBase64(data.Text())
		return b, err == nil && len(b) > 0
	}
	b := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(b, text)
	if err != nil {
		again, err := decodeBase64(string(text))
		return again, err == nil && len(again) > 0
	}
	return b[:n], n > 0
}

// decodeBase64 reads base64 that may be broken into lines.
func decodeBase64(text string) ([]byte, error) {
	if strings.ContainsAny(text, " \n\r\t") {
		text = strings.Join(strings.Fields(text), "")
	}
	return base64.StdEncoding.DecodeString(text)
}

// propertyNode is one property as it stands in a document.
type propertyNode struct{ typ, value, whole docs.Value }

func (p propertyNode) typeName() (string, bool) {
	name := p.typ.Text()
	return name, name != ""
}

func (p propertyNode) at(b blob) validate.Place { return b.at(p.whole) }
