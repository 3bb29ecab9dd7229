package document

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/chandler-fleet/chandler/services/gateway/seconds"
)

// precise says how times of answers are written. A schema that requests have, too, says nothing of it: they may name
// any moment that RFC 3339 can write.
func precise(doc *huma.OpenAPI) {
	given, answered := reach{doc, map[*huma.Schema]bool{}}, reach{doc, map[*huma.Schema]bool{}}
	for _, item := range doc.Paths {
		for _, op := range Operations(item) {
			if op.RequestBody != nil {
				given.content(op.RequestBody.Content)
			}
			for _, p := range op.Parameters {
				given.schema(p.Schema)
			}
			for _, answer := range op.Responses {
				answered.content(answer.Content)
			}
		}
	}
	for s := range answered.found {
		if s.Format == "date-time" && !given.found[s] {
			s.Pattern = seconds.Pattern
		}
	}
}

// reach collects the schemas that something leads to.
type reach struct {
	doc   *huma.OpenAPI
	found map[*huma.Schema]bool
}

func (r reach) content(all map[string]*huma.MediaType) {
	for _, c := range all {
		r.schema(c.Schema)
	}
}

func (r reach) schema(s *huma.Schema) {
	if s == nil || r.found[s] {
		return
	}
	r.found[s] = true
	if strings.HasPrefix(s.Ref, schemaReference) {
		r.schema(r.doc.Components.Schemas.SchemaFromRef(s.Ref))
	}
	r.schema(s.Items)
	if more, ok := s.AdditionalProperties.(*huma.Schema); ok {
		r.schema(more)
	}
	for _, list := range [][]*huma.Schema{s.OneOf, s.AnyOf, s.AllOf} {
		for _, one := range list {
			r.schema(one)
		}
	}
	for _, property := range s.Properties {
		r.schema(property)
	}
}

// schemaReference is how references to schemas begin.
const schemaReference = "#/components/schemas/"
