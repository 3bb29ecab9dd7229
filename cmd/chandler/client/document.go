package client

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/libs/client"
)

// Schema is what the API document says of a value.
type Schema struct {
	Ref         string             `json:"$ref"`
	Type        any                `json:"type"` // a word, or a list of words
	Format      string             `json:"format"`
	Description string             `json:"description"`
	Enum        []any              `json:"enum"`
	Required    []string           `json:"required"`
	Properties  map[string]*Schema `json:"properties"`
	Items       *Schema            `json:"items"`
	// Additional is a Schema, or whether other fields are taken.
	Additional any `json:"additionalProperties"`
}

// Schemas are those of the API document that the gateway serves, by name.
func (c *Client) Schemas(ctx context.Context) (map[string]*Schema, error) {
	type document struct {
		Components struct {
			Schemas map[string]*Schema `json:"schemas"`
		} `json:"components"`
	}
	d, err := get[document](ctx, c, client.NewRequest(http.MethodGet, "/openapi.json", nil, nil))
	return d.Components.Schemas, err
}
