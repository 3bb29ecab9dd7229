package catalog

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/chandler-fleet/chandler/libs/catalog/internal/docs"
)

// The schemas of a file-based catalog (§1.3). All olm.* names are reserved (R-CAT-7).
const (
	SchemaPackage      = "olm.package"
	SchemaChannel      = "olm.channel"
	SchemaBundle       = "olm.bundle"
	SchemaDeprecations = "olm.deprecations"
)

// isTemplate reports whether a schema is one of templates, which are reserved but no content (R-CAT-10).
func isTemplate(schema string) bool {
	return strings.HasPrefix(schema, "olm.template.") || schema == "olm.semver" || schema == "olm.composite"
}

// blob is one document with its envelope read (§1.2). Node is dropped once the document is decoded.
type blob struct {
	place
	schema, pkg, name string
	node              *yaml.Node
}

// readBlob reads the envelope: the keys schema, package and name are recognised in any case, must be
// strings and may occur once (R-CAT-6).
func readBlob(file string, n *yaml.Node) (blob, *Finding) {
	b := blob{place: place{file, n.Line, n.Column}, node: n}
	if n.Kind != yaml.MappingNode {
		f := b.finding(SeverityError, "R-CAT-6", "", "a catalog document must be an object with a schema field; exclude the file in .indexignore if it is no catalog content")
		return b, &f
	}
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		key := strings.ToLower(k.Value)
		field := map[string]*string{"schema": &b.schema, "package": &b.pkg, "name": &b.name}[key]
		if field == nil {
			continue
		}
		at := place{file, k.Line, k.Column}
		if first := seen[key]; first != nil {
			f := at.finding(SeverityError, "R-CAT-6", b.pkg, "duplicate keys for key %q: %q and %q; keep one", key, first.Value, k.Value)
			return b, &f
		}
		seen[key] = k
		v = resolve(v)
		if v.Kind != yaml.ScalarNode || v.ShortTag() != "!!str" {
			f := at.finding(SeverityError, "R-CAT-6", b.pkg, "the value of %q must be a string; put it in quotes", k.Value)
			return b, &f
		}
		*field = v.Value
		if key == "package" && v.Value == "" {
			f := at.finding(SeverityError, "R-CAT-6", "", "package must not be empty; name the package or leave the key out")
			return b, &f
		}
	}
	if b.schema == "" && child(n, "packageName") != nil && child(n, "channels") != nil {
		f := b.finding(SeverityError, "R-CAT-76", "", "this is the package-manifest format, which is no longer supported; migrate it to a file-based catalog, or to bundle directories")
		return b, &f
	}
	if b.schema == "" {
		f := b.finding(SeverityError, "R-CAT-6", b.pkg, "the document is missing root schema field; add it, or exclude the file in .indexignore if it is no catalog content")
		return b, &f
	}
	return b, nil
}

// owner is the package that the blob belongs to: its own name for olm.package.
func (b blob) owner() string {
	if b.schema == SchemaPackage {
		return b.name
	}
	return b.pkg
}

// resolve follows an alias to what it names.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// child returns the value of a key of a mapping, as Go's JSON decoder finds it: exactly, else in any case.
func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil {
		return nil
	}
	n = resolve(n)
	var loose *yaml.Node
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch {
		case n.Content[i].Value == key:
			return n.Content[i+1]
		case loose == nil && strings.EqualFold(n.Content[i].Value, key):
			loose = n.Content[i+1]
		}
	}
	return loose
}

// items returns the elements of a list, nil for anything else.
func items(n *yaml.Node) []*yaml.Node {
	if n == nil {
		return nil
	}
	if n = resolve(n); n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// at returns the place of a node, or the blob's own where it is nil.
func (b blob) at(n *yaml.Node) place {
	if n == nil {
		return b.place
	}
	return place{b.file, n.Line, n.Column}
}

// decode reads a node into a typed value by the rules of Go's JSON decoder.
func (b blob) decode(n *yaml.Node, into any, rule, what string) *Finding {
	raw, derr := docs.JSON(n, docLimits())
	if derr != nil {
		f := place{b.file, derr.Line, derr.Column}.finding(SeverityError, "R-CAT-1", b.owner(), "%s: %s", what, derr.Message)
		return &f
	}
	if err := json.Unmarshal(raw, into); err != nil {
		f := b.at(n).finding(SeverityError, rule, b.owner(), "%s does not have the right form: %v", what, strings.TrimPrefix(err.Error(), "json: "))
		return &f
	}
	return nil
}

// manifest reads the base64 text of an olm.bundle.object property.
func manifest(n *yaml.Node) ([]byte, bool) {
	data := child(n, "data")
	if data == nil {
		return nil, false
	}
	data = resolve(data)
	if data.Kind != yaml.ScalarNode {
		return nil, false
	}
	b, err := decodeBase64(data.Value)
	return b, err == nil && len(b) > 0
}

// decodeBase64 reads base64 that may be broken into lines.
func decodeBase64(text string) ([]byte, error) {
	if strings.ContainsAny(text, " \n\r\t") {
		text = strings.Join(strings.Fields(text), "")
	}
	return base64.StdEncoding.DecodeString(text)
}
