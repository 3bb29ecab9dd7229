package catalog

import (
	"encoding/json"

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
func (p Package) Digest() (digest.Digest, error) { return digest.JSON(PackageType, p) }
