// Package document completes the OpenAPI document that huma makes of types and operations: what linters and generators
// ask for beyond it, and nothing that changes what the API does.
package document

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"sigs.k8s.io/yaml"
)

// Info is the head of the document.
func Info(description string) *huma.Info {
	return &huma.Info{
		Title: "Chandler", Version: "v1", Description: description,
		Contact: &huma.Contact{Name: "Chandler", URL: "https://github.com/chandler-fleet/chandler"},
		License: &huma.License{Name: "Apache License 2.0", Identifier: "Apache-2.0"},
	}
}

// Complete finishes a document to which nothing is added any more: generators write the summary of an operation on one
// line and its description above the function, so that the summary is the first clause of the sentence; what a pattern
// means stands in the description, since OpenAPI has no field for it.
func Complete(doc *huma.OpenAPI) {
	used := map[string]bool{}
	doc.Components.Parameters = map[string]*huma.Param{noneMatch: {
		Name: "If-None-Match", In: "header", Schema: &huma.Schema{Type: huma.TypeString},
		Description: "ETag of an answer that is there: 304, without a body, where the answer would be the same",
	}}
	for _, item := range doc.Paths {
		for method, op := range Operations(item) {
			describe(op)
			bound(op)
			if method == http.MethodGet {
				op.Parameters = append(op.Parameters, &huma.Param{Ref: "#/components/parameters/" + noneMatch})
			}
			for _, p := range op.Parameters {
				explainPattern(&p.Description, p.Schema)
			}
			for _, tag := range op.Tags {
				used[tag] = true
			}
		}
	}
	for _, t := range tags {
		if used[t.Name] {
			doc.Tags = append(doc.Tags, t)
		}
	}
	for _, s := range doc.Components.Schemas.Map() {
		walk(s)
	}
	precise(doc)
}

// noneMatch is the name of the parameter that every read has.
const noneMatch = "IfNoneMatch"

// Operations are those of a path, by method.
func Operations(item *huma.PathItem) map[string]*huma.Operation {
	all := map[string]*huma.Operation{
		"GET": item.Get, "PUT": item.Put, "POST": item.Post, "DELETE": item.Delete, "OPTIONS": item.Options,
		"HEAD": item.Head, "PATCH": item.Patch, "TRACE": item.Trace,
	}
	for method, op := range all {
		if op == nil {
			delete(all, method)
		}
	}
	return all
}

func describe(op *huma.Operation) {
	sentence := op.Summary + "."
	op.Summary, _, _ = strings.Cut(op.Summary, ";")
	op.Summary, _, _ = strings.Cut(op.Summary, ": ")
	if op.Description == "" {
		op.Description = sentence
		return
	}
	op.Description = sentence + " " + op.Description
}

// bound says how large a body may be.
func bound(op *huma.Operation) {
	if op.RequestBody == nil || op.MaxBodyBytes <= 0 {
		return
	}
	if op.RequestBody.Description != "" {
		op.RequestBody.Description += ". "
	}
	op.RequestBody.Description += fmt.Sprintf("At most %d bytes.", op.MaxBodyBytes)
}

// HeadersOf are the headers of a problem that say when to ask again, and what may be asked.
func HeadersOf(status int) map[string]*huma.Param {
	header := func(text string) *huma.Param {
		return &huma.Param{Description: text, Schema: &huma.Schema{Type: huma.TypeInteger}}
	}
	switch status {
	case http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return map[string]*huma.Param{"Retry-After": header("Seconds until asking again makes sense")}
	case http.StatusTooManyRequests:
		return map[string]*huma.Param{
			"Retry-After":         header("Seconds until asking again makes sense"),
			"RateLimit-Limit":     header("Requests of the class that may be made at once"),
			"RateLimit-Remaining": header("How many of them are left"),
			"RateLimit-Reset":     header("Seconds until all of them are there again"),
			"RateLimit-Policy": {
				Description: "The limit, the seconds within which it is filled up, and the class: LIMIT;w=SECONDS;name=CLASS",
				Schema:      &huma.Schema{Type: huma.TypeString},
			},
		}
	default:
		return nil
	}
}

func walk(s *huma.Schema) {
	if s == nil {
		return
	}
	explainPattern(&s.Description, s)
	walk(s.Items)
	if more, ok := s.AdditionalProperties.(*huma.Schema); ok {
		walk(more)
	}
	for _, list := range [][]*huma.Schema{s.OneOf, s.AnyOf, s.AllOf} {
		for _, one := range list {
			walk(one)
		}
	}
	for _, property := range s.Properties {
		walk(property)
	}
}

// explainPattern moves what a pattern means to where readers of the document look for it. The messages of a refusal
// were made of it before.
func explainPattern(description *string, s *huma.Schema) {
	if s == nil {
		return
	}
	if s.Items != nil {
		explainPattern(description, s.Items)
	}
	means := s.PatternDescription
	s.PatternDescription = ""
	switch {
	case means == "":
	case *description == "":
		first, size := utf8.DecodeRuneInString(means)
		*description = string(unicode.ToUpper(first)) + means[size:]
	default:
		*description += "; " + means
	}
}

// tags are the parts of the API in the order in which a newcomer needs them.
var tags = []*huma.Tag{
	{Name: "Agents", Description: "Who serves a cluster from within, and the join tokens by which one becomes that."},
	{Name: "Clusters", Description: "Clusters that were given to Chandler, their labels, taints, settings and credentials."},
	{Name: "Catalogs", Description: "Catalogs, their sources and credentials, and what they offer."},
	{Name: "Operator groups", Description: "Which namespaces the operators of a namespace serve."},
	{Name: "Subscriptions", Description: "What a namespace should run and by which channel it is kept current."},
	{Name: "Install plans", Description: "What is to be done in a cluster, and who approves it."},
	{Name: "Approval policies", Description: "When a plan needs a person, and how many."},
	{Name: "Operators", Description: "What is installed, how it fares, and its removal."},
	{Name: "Fleet subscriptions", Description: "An operator for many clusters, and the rollouts that bring it to them."},
	{Name: "Fleet", Description: "How the fleet does, in numbers."},
	{Name: "Previews", Description: "What a change would lead to, before it is made."},
	{Name: "Effects", Description: "The switch that stops all plans."},
	{Name: "Events", Description: "The event log: who did what, when and why."},
	{Name: "Webhooks", Description: "Which events are sent to whom, and what became of it."},
	{Name: "Event log", Description: "Events that a consumer of the log could not take."},
	{Name: "Tokens", Description: "Who may ask, with what they are known, and what they asked."},
	{Name: "Quotas", Description: "What each tenant may have and ask for, beside what it has."},
	{Name: "Roles", Description: "Who may do what, and where."},
	{Name: "Replicas", Description: "Replicas of the installer and the clusters that they run."},
	{Name: "Operations", Description: "What became of a write whose end takes long."},
	{Name: "Rules", Description: "What the rules that problems and findings name demand."},
}

// Downgrade writes the document in OpenAPI 3.0.
func Downgrade(doc *huma.OpenAPI) ([]byte, error) {
	// An identifier of a license came with 3.1.
	older, info := *doc, *doc.Info
	if info.License != nil {
		info.License = &huma.License{Name: info.License.Name, URL: licenseURL}
	}
	older.Info = &info
	withoutCertificates(&older)
	raw, err := older.Downgrade()
	if err != nil {
		return nil, fmt.Errorf("write the document in OpenAPI 3.0: %w", err)
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, fmt.Errorf("write the document in OpenAPI 3.0: %w", err)
	}
	adapt(tree)
	if raw, err = yaml.Marshal(tree); err != nil {
		return nil, fmt.Errorf("write the document in OpenAPI 3.0: %w", err)
	}
	return raw, nil
}

// mutualTLS is the type of security schemes that came with 3.1.
const mutualTLS = "mutualTLS"

// withoutCertificates takes client certificates out of a copy of a document, of which it changes no part in place.
func withoutCertificates(doc *huma.OpenAPI) {
	if doc.Components == nil {
		return
	}
	components := *doc.Components
	components.SecuritySchemes = maps.Clone(components.SecuritySchemes)
	maps.DeleteFunc(components.SecuritySchemes, func(_ string, s *huma.SecurityScheme) bool {
		return s.Type == mutualTLS
	})
	doc.Components = &components
	doc.Security = slices.DeleteFunc(slices.Clone(doc.Security), func(one map[string][]string) bool {
		for name := range one {
			if components.SecuritySchemes[name] == nil {
				return true
			}
		}
		return false
	})
}

// adapt does what huma leaves out. A reference that has company goes into an allOf, since in 3.0 all that stands beside
// a reference is dropped; bytes of a media type are the format binary.
func adapt(node any) {
	switch node := node.(type) {
	case map[string]any:
		if _, ok := node[contentMediaType].(string); ok {
			delete(node, contentMediaType)
			node["format"] = "binary"
		}
		if to, ok := node[reference].(string); ok && len(node) > 1 {
			delete(node, reference)
			node["allOf"] = []any{map[string]any{reference: to}}
		}
		for _, child := range node {
			adapt(child)
		}
	case []any:
		for _, child := range node {
			adapt(child)
		}
	}
}

const (
	licenseURL = "https://www.apache.org/licenses/LICENSE-2.0"
	reference  = "$ref"

	contentMediaType = "contentMediaType"
)
