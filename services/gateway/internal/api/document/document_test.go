package document_test

import (
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/chandler-fleet/chandler/services/gateway/internal/api/document"
)

// TestComplete: what a linter asks for is there, and what a pattern means is not lost.
func TestComplete(t *testing.T) {
	t.Parallel()
	schemas := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	op := &huma.Operation{
		Summary: "Do it; for administrators", Tags: []string{"Tokens"},
		Parameters: []*huma.Param{{
			Name: "id", In: "path", Schema: &huma.Schema{Type: huma.TypeString, PatternDescription: "a label"},
		}},
	}
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0", Info: document.Info("text"), Components: &huma.Components{Schemas: schemas},
		Paths: map[string]*huma.PathItem{"/x": {Get: op}},
	}
	schemas.Map()["Outer"] = &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{
		"inner": {Ref: "#/components/schemas/Inner", Description: "What is said of the field"},
		"name":  {Type: huma.TypeString, Description: "Its name", PatternDescription: "a subdomain"},
	}}
	document.Complete(doc)
	if op.Summary != "Do it" || op.Description != "Do it; for administrators." ||
		op.Parameters[0].Description != "A label" || len(doc.Tags) != 1 || doc.Tags[0].Name != "Tokens" {
		t.Errorf("completed to %+v with tags %v", op, doc.Tags)
	}
	if s := schemas.Map()["Outer"].Properties["name"]; s.Description != "Its name; a subdomain" ||
		s.PatternDescription != "" {
		t.Errorf("a field is described as %q", s.Description)
	}
	older, err := document.Downgrade(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"openapi: 3.0.3", "description: What is said of the field", "allOf:"} {
		if !strings.Contains(string(older), want) {
			t.Errorf("in 3.0 there is no %q:\n%s", want, older)
		}
	}
	if doc.Info.License.Identifier == "" {
		t.Error("the document itself lost the identifier of its license")
	}
}
