package catalog

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog/internal/value"
	"github.com/chandler-fleet/chandler/libs/digest"
)

// Package is one package of a catalog revision: what the resolver reads and the browse API shows.
// It is immutable and addressed by the digest of its canonical JSON. Channels are sorted by name,
// bundles by name, so that the order of files and documents does not matter (R-CAT-5).
type Package struct {
	Name           string        `json:"name"`
	DefaultChannel string        `json:"defaultChannel"`
	Description    string        `json:"description,omitempty"`
	Icon           *Icon         `json:"icon,omitempty"`
	Channels       []Channel     `json:"channels"`
	Bundles        []Bundle      `json:"bundles"`
	Deprecations   []Deprecation `json:"deprecations,omitempty"`
	Properties     []Property    `json:"properties,omitempty"`
	// Other holds blobs of unknown schemas that name this package (R-CAT-8), as digests of their bytes.
	Other []OtherBlob `json:"other,omitempty"`
}

// Icon is the package's picture.
type Icon struct {
	Data      []byte `json:"base64data"`
	MediaType string `json:"mediatype"`
}

// Channel is an update stream: entries as the author wrote them.
type Channel struct {
	Name       string     `json:"name"`
	Entries    []Entry    `json:"entries"`
	Properties []Property `json:"properties,omitempty"`
}

// Entry is one bundle of a channel with its edges (R-GRA-3).
type Entry struct {
	Name      string   `json:"name"`
	Replaces  string   `json:"replaces,omitempty"`
	Skips     []string `json:"skips,omitempty"`
	SkipRange string   `json:"skipRange,omitempty"`
}

// Bundle is one version of an operator.
type Bundle struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Release string `json:"release,omitempty"`
	Image   string `json:"image,omitempty"`
	// Properties without olm.bundle.object and olm.csv.metadata.
	Properties    []Property     `json:"properties"`
	RelatedImages []RelatedImage `json:"relatedImages,omitempty"`
	// Metadata is the CSV's display part (olm.csv.metadata, or taken from the CSV itself).
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// Content is the digest of the canonical bundle (libs/bundle), "" where the manifests are not at hand.
	Content digest.Digest `json:"content,omitempty"`
}

// Property is a type and any JSON value.
type Property struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// RelatedImage is an image that the operator can use.
type RelatedImage struct {
	Name  string `json:"name,omitempty"`
	Image string `json:"image"`
}

// Deprecation is one entry of olm.deprecations (R-CAT-13).
type Deprecation struct {
	Schema  string `json:"schema"` // olm.package, olm.channel, olm.bundle
	Name    string `json:"name,omitempty"`
	Message string `json:"message"`
}

// OtherBlob points to a blob of an unknown schema.
type OtherBlob struct {
	Schema string        `json:"schema"`
	Name   string        `json:"name,omitempty"`
	Digest digest.Digest `json:"digest"`
}

// PackageType is the type prefix of a package's digest.
const PackageType = "chandler.package.v1"

// Digest returns the package's content address.
func (p Package) Digest() (digest.Digest, error) {
	h := sha256.New()
	h.Write([]byte(PackageType + "\n"))
	if err := p.canonical(func(b []byte) { h.Write(b) }); err != nil {
		return "", err
	}
	return digest.FromSum(h.Sum(nil)), nil
}

// Canonical returns what the digest is taken of, without the prefix: digest.Canonical of the package.
func (p Package) Canonical() (json.RawMessage, error) {
	var out []byte
	err := p.canonical(func(b []byte) { out = append(out, b...) })
	return out, err
}

// canonical hands out the canonical form piece by piece. It encodes the few fields of a package with numbers
// in place of the values that it only carries, puts that in order, and the values, which are nearly all of
// it, in place of the numbers. Most of them are canonical already; to write and order the whole takes several
// times as long.
func (p Package) canonical(write func([]byte)) error {
	var values []json.RawMessage
	number := func(v json.RawMessage) json.RawMessage {
		values = append(values, v)
		return strconv.AppendInt(nil, int64(len(values)-1), 10)
	}
	properties := func(in []Property) []Property {
		out := slices.Clone(in)
		for i := range out {
			out[i].Value = number(out[i].Value)
		}
		return out
	}
	p.Properties, p.Channels, p.Bundles = properties(p.Properties), slices.Clone(p.Channels), slices.Clone(p.Bundles)
	for i := range p.Channels {
		p.Channels[i].Properties = properties(p.Channels[i].Properties)
	}
	for i := range p.Bundles {
		bundle := &p.Bundles[i]
		bundle.Properties = properties(bundle.Properties)
		if len(bundle.Metadata) > 0 {
			bundle.Metadata = number(bundle.Metadata)
		}
	}
	frame, err := digest.Canonical(p)
	if err != nil {
		return err
	}
	return fill(write, frame, values)
}

// fill writes a frame, all of whose numbers are indices of the values that stand there.
func fill(write func([]byte), frame []byte, values []json.RawMessage) error {
	inString := false
	from := 0
	for i := 0; i < len(frame); i++ {
		c := frame[i]
		switch {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && c >= '0' && c <= '9':
			n := 0
			write(frame[from:i])
			for ; frame[i] >= '0' && frame[i] <= '9'; i++ {
				n = 10*n + int(frame[i]-'0')
			}
			value := values[n]
			if len(value) == 0 {
				value = json.RawMessage("null")
			}
			value, err := digest.Canonical(value)
			if err != nil {
				return err
			}
			write(value)
			from = i
			i--
		}
	}
	write(frame[from:])
	return nil
}

// Channel returns a channel of the package by its name.
func (p Package) Channel(name string) (Channel, bool) {
	i := slices.IndexFunc(p.Channels, func(c Channel) bool { return c.Name == name })
	if i < 0 {
		return Channel{}, false
	}
	return p.Channels[i], true
}

// Bundle returns a bundle of the package by its name.
func (p Package) Bundle(name string) (Bundle, bool) {
	i := slices.IndexFunc(p.Bundles, func(b Bundle) bool { return b.Name == name })
	if i < 0 {
		return Bundle{}, false
	}
	return p.Bundles[i], true
}

// Default returns the default channel (R-CAT-31).
func (p Package) Default() (Channel, bool) { return p.Channel(p.DefaultChannel) }

// Versions returns the version of every bundle by its name, as Graph's paths need them.
func (p Package) Versions() map[string]string {
	out := make(map[string]string, len(p.Bundles))
	for _, b := range p.Bundles {
		out[b.Name] = b.Version
	}
	return out
}

// DeprecationsOf returns what is deprecated about a bundle of a channel, on all three levels: the
// package, the channel, the bundle, in this order. None implies another (R-CAT-13). An empty name asks
// for nothing on its level.
func (p Package) DeprecationsOf(channel, bundle string) []Deprecation {
	var out []Deprecation
	for _, level := range []struct{ schema, name string }{
		{SchemaPackage, ""},
		{SchemaChannel, channel},
		{SchemaBundle, bundle},
	} {
		if level.name == "" && level.schema != SchemaPackage {
			continue
		}
		for _, d := range p.Deprecations {
			if d.Schema == level.schema && d.Name == level.name {
				out = append(out, d)
			}
		}
	}
	return out
}

// The schemas of a file-based catalog (§1.3). All olm.* names are reserved (R-CAT-7).
const (
	SchemaPackage      = "olm.package"
	SchemaChannel      = "olm.channel"
	SchemaBundle       = "olm.bundle"
	SchemaDeprecations = "olm.deprecations"
)

// Annotation keys of metadata/annotations.yaml (R-CAT-55).
const (
	annotationPrefix         = "operators.operatorframework.io.bundle."
	AnnotationMediaType      = annotationPrefix + "mediatype.v1"
	AnnotationManifests      = annotationPrefix + "manifests.v1"
	AnnotationMetadata       = annotationPrefix + "metadata.v1"
	AnnotationPackage        = annotationPrefix + "package.v1"
	AnnotationChannels       = annotationPrefix + "channels.v1"
	AnnotationDefaultChannel = annotationPrefix + "channel.default.v1"
	// AnnotationSkipRange stands in a CSV (R-GRA-3).
	AnnotationSkipRange = "olm.skipRange"
	// MediaTypeRegistryV1 is the only media type whose bundles can be installed.
	MediaTypeRegistryV1 = "registry+v1"
)

// Property types with a meaning (§1.4). Any other is opaque.
const (
	TypePackage         = "olm.package"
	TypeGVK             = "olm.gvk"
	TypePackageRequired = "olm.package.required"
	TypeGVKRequired     = "olm.gvk.required"
	TypeConstraint      = "olm.constraint"
	TypeBundleObject    = "olm.bundle.object"
	TypeCSVMetadata     = "olm.csv.metadata"
	TypeDeprecated      = "olm.deprecated"
)

// PackageProperty is the value of olm.package: the identity of a bundle.
type PackageProperty struct {
	PackageName string `json:"packageName"`
	Version     string `json:"version"`
	Release     string `json:"release,omitempty"`
}

// GVK is the value of olm.gvk and olm.gvk.required: an API.
type GVK struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

// String is "Kind (group/version)".
func (g GVK) String() string { return fmt.Sprintf("%s (%s/%s)", g.Kind, g.Group, g.Version) }

// PackageRequired is the value of olm.package.required: another package in a range of versions.
type PackageRequired struct {
	PackageName  string `json:"packageName"`
	VersionRange string `json:"versionRange"`
}

// propertyValues decodes the values of all properties of one type.
func propertyValues[T any](b Bundle, typ string) ([]T, error) {
	var out []T
	for _, p := range b.Properties {
		if p.Type != typ {
			continue
		}
		var v T
		if err := json.Unmarshal(p.Value, &v); err != nil {
			return nil, fmt.Errorf("property %s of bundle %s: %w", typ, b.Name, err)
		}
		out = append(out, v)
	}
	return out, nil
}

// Identities returns what the bundle says of its package and version (olm.package): one where it is valid.
func (b Bundle) Identities() ([]PackageProperty, error) {
	return propertyValues[PackageProperty](b, TypePackage)
}

// Provides returns the APIs that the bundle offers (olm.gvk).
func (b Bundle) Provides() ([]GVK, error) { return propertyValues[GVK](b, TypeGVK) }

// RequiredGVKs returns the APIs that the bundle needs (olm.gvk.required).
func (b Bundle) RequiredGVKs() ([]GVK, error) { return propertyValues[GVK](b, TypeGVKRequired) }

// RequiredPackages returns the packages that the bundle needs (olm.package.required).
func (b Bundle) RequiredPackages() ([]PackageRequired, error) {
	return propertyValues[PackageRequired](b, TypePackageRequired)
}

// Deprecated reports whether the bundle may stay installed but not be chosen (R-RES-14).
func (b Bundle) Deprecated() bool {
	for _, p := range b.Properties {
		if p.Type == TypeDeprecated {
			return true
		}
	}
	return false
}

// ParseRange parses a range of versions: ">=1.0.0 <2.0.0 !1.2.1", "||" between alternatives (R-CAT-17).
func ParseRange(s string) (semver.Range, error) { return value.Range(s) }
