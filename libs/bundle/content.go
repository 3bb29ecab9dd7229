package bundle

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// Type is the type prefix of a bundle's digest.
const Type = "chandler.bundle.v1"

// Limits on one bundle. The largest of 5,312 published ones has 6.8 MB of manifests in 84 files.
const (
	// MaxBytes bounds the canonical bundle, and so the memory that unpacking one can take.
	MaxBytes = 32 << 20
	// MaxManifests bounds the number of objects.
	MaxManifests = 1000
	// MaxDepth bounds nesting; CRD schemas of published bundles stay below 60.
	MaxDepth = 200
)

// Kinds that a bundle is sorted into.
const (
	KindCSV = "ClusterServiceVersion"
	KindCRD = "CustomResourceDefinition"
)

// Content is the set of manifests of one bundle, each one object as JSON, in canonical order.
type Content struct {
	Manifests []json.RawMessage `json:"manifests"`
}

// Object is one manifest with its identity.
type Object struct {
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
	Raw        json.RawMessage
}

// String is "kind name", for error texts.
func (o Object) String() string { return o.Kind + " " + o.Name }

// FromManifests parses manifests (YAML or JSON, each one object) into canonical order. Errors are
// errs.Invalid or errs.TooLarge; their Field is the manifest's index, such as "/3".
func FromManifests(raw [][]byte) (Content, error) {
	if len(raw) > MaxManifests {
		return Content{}, errs.New(errs.TooLarge, "bundle has %d manifests, more than %d", len(raw), MaxManifests).At(
			"", "bundle.MaxManifests")
	}
	objects := make([]Object, 0, len(raw))
	total := 0
	for i, r := range raw {
		o, err := parse(r)
		if err != nil {
			return Content{}, at(err, i)
		}
		total += len(o.Raw)
		if total > MaxBytes {
			return Content{}, errs.New(errs.TooLarge, "bundle is larger than %d bytes", MaxBytes).At(
				fmt.Sprintf("/%d", i), "bundle.MaxBytes")
		}
		objects = append(objects, o)
	}
	return fromObjects(objects)
}

func at(err error, i int) error {
	var e *errs.Error
	if ok := asError(err, &e); ok {
		return e.At(fmt.Sprintf("/%d", i), e.Rule)
	}
	return errs.New(errs.Invalid, "manifest %d: %v", i+1, err).At(fmt.Sprintf("/%d", i), "R-CAT-51")
}

func fromObjects(objects []Object) (Content, error) {
	objects, err := ordered(objects)
	if err != nil {
		return Content{}, err
	}
	c := Content{Manifests: make([]json.RawMessage, 0, len(objects))}
	for _, o := range objects {
		c.Manifests = append(c.Manifests, o.Raw)
	}
	return c, nil
}

// ordered puts objects in canonical order, each one once.
func ordered(objects []Object) ([]Object, error) {
	slices.SortStableFunc(objects, compare)
	out := make([]Object, 0, len(objects))
	for i, o := range objects {
		if i > 0 && compare(objects[i-1], o) == 0 {
			if bytes.Equal(objects[i-1].Raw, o.Raw) {
				continue // the same object in two files says nothing more
			}
			return nil, errs.New(errs.Invalid, "bundle holds %s twice with different content", o).At("", "R-CAT-51")
		}
		out = append(out, o)
	}
	return out, nil
}

func compare(a, b Object) int {
	return cmp.Or(
		cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// parse reads one manifest as canonical JSON and takes its identity.
func parse(raw []byte) (Object, error) {
	if len(raw) > MaxBytes {
		return Object{}, errs.New(errs.TooLarge, "manifest has %d bytes, more than %d", len(raw), MaxBytes).At(
			"", "bundle.MaxBytes")
	}
	j, err := toJSON(raw)
	if err != nil {
		return Object{}, err
	}
	if d := depth(j); d > MaxDepth {
		return Object{}, errs.New(errs.TooLarge, "manifest is nested %d deep, more than %d", d, MaxDepth).At(
			"", "bundle.MaxDepth")
	}
	c, err := digest.Canonical(json.RawMessage(j))
	if err != nil {
		return Object{}, errs.New(errs.Invalid, "manifest: %v", err).At("", "R-CAT-51")
	}
	return identify(c)
}

// toJSON passes JSON and converts YAML as Kubernetes does (YAML 1.1 booleans and octals). Alias
// bombs are refused by the YAML library's own ratio of aliases to nodes.
func toJSON(raw []byte) ([]byte, error) {
	t := bytes.TrimSpace(raw)
	if len(t) > 0 && t[0] == '{' && json.Valid(t) {
		return t, nil
	}
	j, err := yaml.YAMLToJSON(raw)
	if err != nil {
		return nil, errs.New(errs.Invalid, "manifest is neither YAML nor JSON: %v", err).At("", "R-CAT-51")
	}
	if len(j) > MaxBytes {
		return nil, errs.New(errs.TooLarge, "manifest has more than %d bytes as JSON", MaxBytes).At(
			"", "bundle.MaxBytes")
	}
	return j, nil
}

// depth returns the deepest nesting of valid JSON without recursion.
func depth(j []byte) int {
	var now, deepest int
	inString, escaped := false, false
	for _, b := range j {
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped, inString = b == '\\', b != '"'
		case b == '"':
			inString = true
		case b == '{' || b == '[':
			now++
			deepest = max(deepest, now)
		case b == '}' || b == ']':
			now--
		}
	}
	return deepest
}

// identify takes the identity of an object in canonical form.
func identify(j []byte) (Object, error) {
	if o, ok := identity(j); ok {
		return o, nil
	}
	var m struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(j, &m); err != nil {
		return Object{}, errs.New(errs.Invalid, "manifest is not a Kubernetes object: %v", err).At("", "R-CAT-51")
	}
	if m.APIVersion == "" || m.Kind == "" || m.Metadata.Name == "" {
		return Object{}, errs.New(errs.Invalid, "manifest lacks apiVersion (%q), kind (%q) or metadata.name (%q)",
			m.APIVersion, m.Kind, m.Metadata.Name).At("", "R-CAT-51")
	}
	return Object{
		APIVersion: m.APIVersion, Kind: m.Kind, Namespace: m.Metadata.Namespace, Name: m.Metadata.Name,
		Raw: j,
	}, nil
}

// Canonical returns the bundle's canonical JSON and its digest.
func (c Content) Canonical() ([]byte, digest.Digest, error) {
	b, err := digest.Canonical(c)
	if err != nil {
		return nil, "", errs.New(errs.Invalid, "bundle: %v", err).At("", "R-CAT-51")
	}
	return b, digest.Bytes(append([]byte(Type+"\n"), b...)), nil
}

// Objects returns every manifest with its identity, in canonical order.
func (c Content) Objects() ([]Object, error) {
	out := make([]Object, 0, len(c.Manifests))
	for i, m := range c.Manifests {
		o, err := identify(m)
		if err != nil {
			return nil, at(err, i)
		}
		out = append(out, o)
	}
	return out, nil
}

// CRDs returns the CustomResourceDefinitions in order of name.
func (c Content) CRDs() ([]Object, error) {
	return c.filter(func(o Object) bool { return o.Kind == KindCRD })
}

// Others returns the optional objects (R-CAT-53) of every kind, supported or not.
func (c Content) Others() ([]Object, error) {
	return c.filter(func(o Object) bool { return o.Kind != KindCRD && o.Kind != KindCSV })
}

func (c Content) filter(keep func(Object) bool) ([]Object, error) {
	all, err := c.Objects()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(o Object) bool { return !keep(o) }), nil
}
