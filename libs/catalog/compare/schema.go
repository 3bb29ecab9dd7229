package compare

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Narrowing is a way in which a schema takes less than before (R-CRD-8).
type Narrowing string

// The ways. A default that comes, goes or moves changes what a resource means without its author.
const (
	SchemaAppears     Narrowing = "SchemaAppears" // there was none: everything was valid
	PruningBegins     Narrowing = "PruningBegins"
	FieldRemoved      Narrowing = "FieldRemoved"
	FieldRequired     Narrowing = "FieldRequired"
	TypeChanged       Narrowing = "TypeChanged"
	FormatChanged     Narrowing = "FormatChanged"
	DefaultChanged    Narrowing = "DefaultChanged"
	EnumAppears       Narrowing = "EnumAppears"
	EnumValuesRemoved Narrowing = "EnumValuesRemoved"
	LimitTightened    Narrowing = "LimitTightened"
	PatternChanged    Narrowing = "PatternChanged"
	NoLongerNullable  Narrowing = "NoLongerNullable"
	RuleAppears       Narrowing = "RuleAppears"  // x-kubernetes-validations
	MergeChanged      Narrowing = "MergeChanged" // list and map types: who owns what in server-side apply
	Unclassified      Narrowing = "Unclassified" // allOf, anyOf, oneOf, not and the like differ
)

// SchemaChange is one place where a schema became narrower.
type SchemaChange struct {
	Version string    `json:"version"`
	Path    string    `json:"path"` // such as spec.size or spec.volumes[].name; "" is the whole
	Kind    Narrowing `json:"kind"`
	From    string    `json:"from,omitempty"`
	To      string    `json:"to,omitempty"`
}

// schema is a JSON schema as CRDs use it. What is compared as a whole is kept as it is.
type schema struct {
	Type                 string             `json:"type"`
	Format               string             `json:"format"`
	Properties           map[string]*schema `json:"properties"`
	Required             []string           `json:"required"`
	Items                *schema            `json:"items"`
	AdditionalProperties *boolOrSchema      `json:"additionalProperties"`
	Default              json.RawMessage    `json:"default"`
	Enum                 []json.RawMessage  `json:"enum"`
	Pattern              string             `json:"pattern"`
	Nullable             bool               `json:"nullable"`
	Minimum              *json.Number       `json:"minimum"`
	Maximum              *json.Number       `json:"maximum"`
	ExclusiveMinimum     bool               `json:"exclusiveMinimum"`
	ExclusiveMaximum     bool               `json:"exclusiveMaximum"`
	MinLength            *json.Number       `json:"minLength"`
	MaxLength            *json.Number       `json:"maxLength"`
	MinItems             *json.Number       `json:"minItems"`
	MaxItems             *json.Number       `json:"maxItems"`
	MinProperties        *json.Number       `json:"minProperties"`
	MaxProperties        *json.Number       `json:"maxProperties"`
	MultipleOf           *json.Number       `json:"multipleOf"`
	UniqueItems          bool               `json:"uniqueItems"`
	IntOrString          bool               `json:"x-kubernetes-int-or-string"`
	Preserve             bool               `json:"x-kubernetes-preserve-unknown-fields"`
	Embedded             bool               `json:"x-kubernetes-embedded-resource"`
	ListType             string             `json:"x-kubernetes-list-type"`
	ListMapKeys          []string           `json:"x-kubernetes-list-map-keys"`
	MapType              string             `json:"x-kubernetes-map-type"`
	Rules                []struct {
		Rule string `json:"rule"`
	} `json:"x-kubernetes-validations"`
	AllOf json.RawMessage `json:"allOf"`
	AnyOf json.RawMessage `json:"anyOf"`
	OneOf json.RawMessage `json:"oneOf"`
	Not   json.RawMessage `json:"not"`
}

// boolOrSchema is additionalProperties: a schema, or whether any are allowed.
type boolOrSchema struct {
	allowed bool
	schema  *schema
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *boolOrSchema) UnmarshalJSON(raw []byte) error {
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && raw[0] == '{' {
		b.allowed, b.schema = true, new(schema)
		return json.Unmarshal(raw, b.schema)
	}
	return json.Unmarshal(raw, &b.allowed)
}

// parseSchema reads a version's schema, nil where there is none.
func parseSchema(raw json.RawMessage) (*schema, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil //nolint:nilnil // a version without a schema takes everything
	}
	var v struct {
		Root *schema `json:"openAPIV3Schema"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, errs.New(errs.Invalid, "the schema cannot be read: %v", err).At("/spec/versions/schema", "R-CRD-6")
	}
	return v.Root, nil
}

// narrower gathers what became narrower in one version.
type narrower struct {
	version string
	changes []SchemaChange
	more    int
}

func (w *narrower) add(path string, k Narrowing, from, to string) {
	if len(w.changes) >= MaxSchemaChanges {
		w.more++
		return
	}
	w.changes = append(w.changes, SchemaChange{
		Version: w.version, Path: path, Kind: k, From: short(from),
		To: short(to),
	})
}

// maxShown bounds a value that is shown of a schema: a default can be a whole document.
const maxShown = 120

func short(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "…"
}

// compare descends both schemas side by side. How deep they nest is bounded by the loader.
func (w *narrower) compare(path string, old, now *schema) {
	switch {
	case now == nil || now.open():
		return // takes everything
	case old == nil || old.open() && !now.open():
		w.add(path, SchemaAppears, "", now.Type)
		return
	}
	if old.Type != now.Type || old.IntOrString != now.IntOrString {
		w.add(path, TypeChanged, old.typeName(), now.typeName())
		return
	}
	w.scalar(path, old, now)
	w.limits(path, old, now)
	w.object(path, old, now)
	if now.Items != nil || old.Items != nil {
		w.compare(path+"[]", old.Items, now.Items)
	}
}

// open reports whether a schema takes whatever there is.
func (s *schema) open() bool {
	return s.Preserve && len(s.Properties) == 0 && len(s.Required) == 0 && (s.Type == "" || s.Type == "object")
}

func (s *schema) typeName() string {
	if s.IntOrString {
		return "int-or-string"
	}
	return s.Type
}

// scalar compares what says which values are taken, one by one.
func (w *narrower) scalar(path string, old, now *schema) {
	if old.Format != now.Format && now.Format != "" {
		w.add(path, FormatChanged, old.Format, now.Format)
	}
	if old.Pattern != now.Pattern && now.Pattern != "" {
		w.add(path, PatternChanged, old.Pattern, now.Pattern)
	}
	if !bytes.Equal(old.Default, now.Default) {
		w.add(path, DefaultChanged, string(old.Default), string(now.Default))
	}
	if old.Nullable && !now.Nullable {
		w.add(path, NoLongerNullable, "", "")
	}
	w.enum(path, old, now)
	for _, r := range now.Rules {
		if !slices.Contains(old.Rules, r) {
			w.add(path, RuleAppears, "", r.Rule)
		}
	}
	if old.ListType != now.ListType || old.MapType != now.MapType || !slices.Equal(old.ListMapKeys, now.ListMapKeys) {
		w.add(path, MergeChanged, old.merge(), now.merge())
	}
	for _, pair := range [][2]json.RawMessage{
		{old.AllOf, now.AllOf},
		{old.AnyOf, now.AnyOf},
		{old.OneOf, now.OneOf},
		{old.Not, now.Not},
	} {
		if len(pair[1]) > 0 && !bytes.Equal(pair[0], pair[1]) {
			w.add(path, Unclassified, string(pair[0]), string(pair[1]))
		}
	}
}

func (s *schema) merge() string {
	return strings.TrimSpace(strings.Join([]string{s.ListType, s.MapType, strings.Join(s.ListMapKeys, ",")}, " "))
}

// enum: more values are allowed, fewer are not (R-CRD-8).
func (w *narrower) enum(path string, old, now *schema) {
	if len(now.Enum) == 0 {
		return
	}
	if len(old.Enum) == 0 {
		w.add(path, EnumAppears, "", joined(now.Enum))
		return
	}
	var gone []json.RawMessage
	for _, v := range old.Enum {
		if !slices.ContainsFunc(now.Enum, func(n json.RawMessage) bool { return bytes.Equal(n, v) }) {
			gone = append(gone, v)
		}
	}
	if len(gone) > 0 {
		w.add(path, EnumValuesRemoved, joined(gone), "")
	}
}

func joined(values []json.RawMessage) string {
	all := make([]string, 0, len(values))
	for _, v := range values {
		all = append(all, string(v))
	}
	return strings.Join(all, ", ")
}

// limits: lower bounds must not rise, upper bounds not fall, none may appear (R-CRD-8).
func (w *narrower) limits(path string, old, now *schema) {
	for _, l := range []struct {
		name     string
		old, now *json.Number
		lower    bool
	}{
		{"minimum", old.Minimum, now.Minimum, true},
		{"minLength", old.MinLength, now.MinLength, true},
		{"minItems", old.MinItems, now.MinItems, true},
		{"minProperties", old.MinProperties, now.MinProperties, true},
		{"maximum", old.Maximum, now.Maximum, false},
		{"maxLength", old.MaxLength, now.MaxLength, false},
		{"maxItems", old.MaxItems, now.MaxItems, false},
		{"maxProperties", old.MaxProperties, now.MaxProperties, false},
	} {
		if tighter(l.old, l.now, l.lower) {
			w.add(path, LimitTightened, limit(l.name, l.old), limit(l.name, l.now))
		}
	}
	if m := now.MultipleOf; m != nil && (old.MultipleOf == nil || *old.MultipleOf != *m) {
		w.add(path, LimitTightened, limit("multipleOf", old.MultipleOf), limit("multipleOf", m))
	}
	for _, l := range []struct {
		name    string
		appears bool
	}{
		{"exclusiveMinimum", now.ExclusiveMinimum && !old.ExclusiveMinimum && now.Minimum != nil &&
			!tighter(old.Minimum, now.Minimum, true)},
		{"exclusiveMaximum", now.ExclusiveMaximum && !old.ExclusiveMaximum && now.Maximum != nil &&
			!tighter(old.Maximum, now.Maximum, false)},
		{"uniqueItems", now.UniqueItems && !old.UniqueItems},
	} {
		if l.appears {
			w.add(path, LimitTightened, "", l.name)
		}
	}
}

func tighter(old, now *json.Number, lower bool) bool {
	if now == nil {
		return false
	}
	n, err := now.Float64()
	if err != nil {
		return true
	}
	if old == nil {
		return !lower || n > 0 // a lower bound of nothing excludes nothing that counts
	}
	o, err := old.Float64()
	if err != nil {
		return true
	}
	if lower {
		return n > o
	}
	return n < o
}

func limit(name string, n *json.Number) string {
	if n == nil {
		return ""
	}
	if f, err := n.Float64(); err == nil {
		return name + " " + strconv.FormatFloat(f, 'g', -1, 64)
	}
	return name + " " + n.String()
}

// object compares fields. One that is gone is pruned from every resource unless others are preserved.
func (w *narrower) object(path string, old, now *schema) {
	for _, name := range now.Required {
		if !slices.Contains(old.Required, name) {
			w.add(join(path, name), FieldRequired, "", "")
		}
	}
	for _, name := range union(old.Properties, now.Properties) {
		was, had := old.Properties[name]
		is, has := now.Properties[name]
		switch {
		case had && has:
			w.compare(join(path, name), was, is)
		case had && !now.takes():
			w.add(join(path, name), FieldRemoved, was.typeName(), "")
		}
	}
	switch a, b := old.AdditionalProperties, now.AdditionalProperties; {
	case b == nil || b.allowed && b.schema == nil:
		if a != nil && a.allowed && b == nil && !now.Preserve {
			w.add(path+"{}", FieldRemoved, "", "")
		}
	case a == nil || !a.allowed:
		// Others were pruned before; that some are taken now is no narrowing.
	case !b.allowed:
		w.add(path+"{}", FieldRemoved, "", "")
	default:
		w.compare(path+"{}", a.schema, b.schema)
	}
}

// takes reports whether a field that is not declared is kept all the same.
func (s *schema) takes() bool {
	return s.Preserve || s.AdditionalProperties != nil && s.AdditionalProperties.allowed
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
