// Package template expands the short forms in which authors keep a package (§1.10) into file-based
// documents: basic, where bundles are named by image alone; semver, where channels follow from versions;
// substitutes, where an image takes the place of another bundle. It is pure but for the Render it is given.
package template

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/fbc"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// The schemas of templates.
const (
	Basic       = "olm.template.basic"
	Semver      = "olm.semver"
	Substitutes = "olm.template.substitutes"
)

// Bundle is a bundle that was read, and its document.
type Bundle struct {
	Package string
	Name    string
	Version string
	Blob    fbc.Blob
}

// Render reads the bundle of an image, or of a directory.
type Render func(ctx context.Context, ref string) (Bundle, error)

// Expand turns a template of one schema into documents.
func Expand(ctx context.Context, schema string, text []byte, render Render) ([]fbc.Blob, error) {
	if len(text) > catalog.MaxDocumentBytes {
		return nil, errs.New(errs.TooLarge, "the template has %d bytes, more than %d", len(text),
			catalog.MaxDocumentBytes)
	}
	r := &renderer{render: render, seen: map[string]Bundle{}}
	switch schema {
	case Basic:
		return expandBasic(ctx, text, r)
	case Semver:
		return expandSemver(ctx, text, r)
	case Substitutes:
		return expandSubstitutes(ctx, text, r)
	}
	return nil, errs.New(errs.Invalid, "%q is no schema of a template; there are %s, %s and %s", schema, Basic, Semver,
		Substitutes)
}

// renderer reads each bundle once.
type renderer struct {
	render Render
	seen   map[string]Bundle
}

func (r *renderer) get(ctx context.Context, ref string) (Bundle, error) {
	if b, ok := r.seen[ref]; ok {
		return b, nil
	}
	b, err := r.render(ctx, ref)
	if err != nil {
		return b, fmt.Errorf("bundle %s: %w", ref, err)
	}
	r.seen[ref] = b
	return b, nil
}

// decode reads a template strictly: a field that is not known is an error (R-CAT-81).
func decode(text []byte, schema string, into any) error {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := yaml.Unmarshal(text, &head); err != nil {
		return errs.New(errs.Invalid, "the template is no YAML or JSON: %s",
			strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "))
	}
	if head.Schema != schema {
		return errs.New(errs.Invalid, "the template has the schema %q, not %q", head.Schema, schema).At(
			"/schema", "R-CAT-80")
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		return errs.New(errs.Invalid, "the template does not have the right form: %s",
			strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error unmarshaling JSON: "), "while decoding JSON: "))
	}
	return nil
}

// entries are documents as a template has them.
type entries []json.RawMessage

// expand renders the bundles, which are given by schema and image alone (R-CAT-80).
func (e entries) expand(ctx context.Context, r *renderer) ([]fbc.Blob, error) {
	out := make([]fbc.Blob, 0, len(e))
	for i, raw := range e {
		b, err := fbc.ParseBlob(raw)
		if err != nil {
			return nil, fmt.Errorf("entry %d of the template: %w", i+1, err)
		}
		if b.Schema != catalog.SchemaBundle {
			out = append(out, b)
			continue
		}
		image, err := imageOf(raw)
		if err != nil {
			return nil, fmt.Errorf("entry %d of the template: %w", i+1, err)
		}
		bundle, err := r.get(ctx, image)
		if err != nil {
			return nil, err
		}
		out = append(out, bundle.Blob)
	}
	return out, nil
}

func imageOf(raw json.RawMessage) (string, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return "", errs.Wrap(errs.Invalid, err, "a bundle of a template")
	}
	var image string
	var other []string
	for key, value := range fields {
		switch strings.ToLower(key) {
		case "schema":
		case "image":
			if err := json.Unmarshal(value, &image); err != nil {
				return "", errs.New(errs.Invalid, "the image of a bundle must be a string").At("/image", "R-CAT-80")
			}
		default:
			other = append(other, key)
		}
	}
	slices.Sort(other)
	switch {
	case len(other) > 0:
		return "", errs.New(errs.Invalid,
			"a bundle of a template has schema and image alone, the rest comes from the image; take out %s",
			strings.Join(other, ", ")).At("", "R-CAT-80")
	case image == "":
		return "", errs.New(errs.Invalid, "a bundle of a template must name its image").At("/image", "R-CAT-80")
	}
	return image, nil
}

func expandBasic(ctx context.Context, text []byte, r *renderer) ([]fbc.Blob, error) {
	var t struct {
		Schema  string  `json:"schema"`
		Entries entries `json:"entries"`
	}
	if err := decode(text, Basic, &t); err != nil {
		return nil, err
	}
	if len(t.Entries) == 0 {
		return nil, errs.New(errs.Invalid, "the template has no entries").At("/entries", "R-CAT-80")
	}
	return t.Entries.expand(ctx, r)
}
