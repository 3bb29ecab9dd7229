package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
	"github.com/chandler-fleet/chandler/services/gateway/sparse"
)

// ListQuery are the parameters of every list.
type ListQuery struct { //nolint:recvcheck // a watch sets the cursor; all else reads
	Limit       int    `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"At most so many items"`
	Cursor      string `query:"cursor" maxLength:"2048" doc:"next of the page before"`
	MinPosition string `query:"minPosition" maxLength:"128" doc:"Wait until the list shows this position"`
}

func (q *ListQuery) paged() *ListQuery { return q }

// ReadQuery are the parameters of every get.
type ReadQuery struct {
	MinPosition string `query:"minPosition" maxLength:"128" doc:"Wait until the answer shows this position"`
}

// list is one page.
type list[T any] struct {
	Items []T    `json:"items" nullable:"false"`
	Next  string `json:"next,omitempty" doc:"Cursor of the next page; absent on the last"`
}

// some keeps of each item the fields that are asked for.
func (l list[T]) some(f sparse.Fields) any {
	if f.All() {
		return l
	}
	out := map[string]any{"items": f.Of(l.Items)}
	if l.Next != "" {
		out["next"] = l.Next
	}
	return out
}

// of is the type whose fields are asked for.
func (list[T]) of() reflect.Type { return typeOf[T]() }

// paramFields chooses fields of answers to reads.
const paramFields = "fields"

// fieldedOperation marks, among the metadata of an operation, of what type fields are chosen.
const fieldedOperation = "fields"

type fieldsKey struct{}

// offerFields lets clients choose fields of an answer of JSON to a read: of each item of a list, else of what is
// answered. A list that is watched has said for itself of what type.
func offerFields(op *huma.Operation, out reflect.Type) {
	if op.Method != http.MethodGet {
		return
	}
	if op.Metadata[fieldedOperation] == nil {
		body, ok := out.FieldByName("Body")
		if !ok || body.Type.Kind() != reflect.Struct {
			return // text, a picture or a stream
		}
		of := body.Type
		if l, ok := reflect.TypeAssert[interface{ of() reflect.Type }](reflect.Zero(of)); ok {
			of = l.of()
		}
		op.Metadata[fieldedOperation] = of
	}
	longest := maxFields
	op.Parameters = append(op.Parameters, &huma.Param{
		Name: paramFields, In: "query",
		Description: "Only these fields, joined by commas, of each item of a list, else of the answer: name,spec.channel; " +
			"a point leads into an object or each element of a list, and to one key of a map. What is left out is absent " +
			"although the schema requires it",
		Schema: &huma.Schema{Type: huma.TypeString, MaxLength: &longest},
	})
}

// maxFields bounds the parameter: the names of all fields of the largest answer have less.
const maxFields = 4096

// chooses reads the fields that a request asks for.
func (d declared) chooses(v *rule.Violations, q url.Values) sparse.Fields {
	given := q.Get(paramFields)
	if d.fields == nil || given == "" {
		return sparse.Fields{}
	}
	if len(given) > maxFields {
		v.Addf("query."+paramFields, rule.MaxLength, "fields has %d characters, %d are allowed", len(given), maxFields)
		return sparse.Fields{}
	}
	return sparse.Parse(v, d.fields, given)
}

// chosenFields are those that a request asks for.
func chosenFields(ctx context.Context) sparse.Fields {
	f, _ := ctx.Value(fieldsKey{}).(sparse.Fields)
	return f
}

// someFields leaves of an answer what was asked for.
func someFields(ctx huma.Context, status string, body any) (any, error) {
	if !strings.HasPrefix(status, "2") {
		return body, nil
	}
	f := chosenFields(ctx.Context())
	if f.All() {
		return body, nil
	}
	if l, ok := body.(interface{ some(f sparse.Fields) any }); ok {
		return l.some(f), nil
	}
	return f.Of(body), nil
}

type listOutput[T any] struct {
	Tagged
	Body list[T]
}

type output[T any] struct {
	Tagged
	Body T
}

// Tagged is an answer with an entity tag. What httpserver.Router adds to it tells the bytes of a read apart.
type Tagged struct {
	ETag string `header:"ETag" doc:"Entity tag of the answer"`
}

// tagOf is the entity tag of what has one.
func tagOf(body any) Tagged {
	if t, ok := body.(interface{ Tag() string }); ok {
		return Tagged{t.Tag()}
	}
	return Tagged{}
}

// MatchHeaders say which version of the object a replacement is decided on.
type MatchHeaders struct {
	IfMatch string `header:"If-Match" maxLength:"1024" doc:"ETag of the object as it was read, whose intent must not have changed since; * replaces whatever is there"`
}

func (h MatchHeaders) match() model.Match { return model.ParseMatch(h.IfMatch, "") }

// MayMatchHeaders are MatchHeaders of a change that may go without them.
type MayMatchHeaders struct{ MatchHeaders }

func (h MayMatchHeaders) match() model.Match {
	m := h.MatchHeaders.match()
	m.Optional = true
	return m
}

// MakeHeaders are MatchHeaders where a replacement makes what is not there.
type MakeHeaders struct {
	MatchHeaders
	IfNoneMatch string `header:"If-None-Match" maxLength:"1" enum:"*" doc:"* makes the object, and replaces none"`
}

func (h MakeHeaders) match() model.Match { return model.ParseMatch(h.IfMatch, h.IfNoneMatch) }

// matched is input with a precondition.
type matched interface{ match() model.Match }

// matching has the changes of ctx hold to the precondition of their input, if it has one. A dry run, which changes
// nothing, needs none.
func matching(ctx context.Context, in any) context.Context {
	with, ok := in.(matched)
	if !ok {
		return ctx
	}
	m := with.match()
	if d, ok := in.(interface{ dry() bool }); ok && d.dry() {
		m.Optional = true
	}
	return unit.Matching(ctx, m)
}

// written is the answer to a write.
type written[T any] struct {
	Location string `header:"Location" doc:"Of what was made"`
	Position string `header:"Chandler-Position" doc:"Of the write's event: epoch-number, or stream@version"`
	Tagged
	Body T
}

func wrote[T any](body T, position, location string, err error) (*written[T], error) {
	if err != nil {
		return nil, err
	}
	return &written[T]{Location: location, Position: position, Tagged: tagOf(body), Body: body}, nil
}

func read[T any](body T, err error) (*output[T], error) {
	if err != nil {
		return nil, err
	}
	return &output[T]{Tagged: tagOf(body), Body: body}, nil
}

// page reads the cursor of a list.
func (q ListQuery) page() (model.Page, error) {
	p := model.Page{Limit: q.Limit}
	if q.Cursor == "" {
		return p, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err == nil {
		err = json.Unmarshal(raw, &p.After)
	}
	if err != nil || len(p.After) == 0 || slices.ContainsFunc(p.After, unkept) {
		return p, errs.New(errs.Invalid, "the cursor is not one that a list has given").At("query.cursor", "cursor")
	}
	return p, nil
}

// unkept says whether the database keeps no such text: no list has given it.
func unkept(s string) bool { return strings.ContainsRune(s, 0) }

// listed makes the answer of a list.
func listed[T any](items []T, next []string, err error) (*listOutput[T], error) {
	if err != nil {
		return nil, err
	}
	if items == nil {
		items = []T{}
	}
	out := &listOutput[T]{Body: list[T]{Items: items}}
	if len(next) > 0 {
		if out.Body.Next, err = cursor(next...); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// cursor writes where the next page begins.
func cursor(after ...string) (string, error) {
	raw, err := json.Marshal(after)
	return base64.RawURLEncoding.EncodeToString(raw), errs.Wrap(errs.Internal, err, "write a cursor")
}

// waitList waits for the read model of a list and reads its cursor.
func (d Deps) waitList(ctx context.Context, who model.Caller, view string, q ListQuery) (model.Page, error) {
	if err := d.Reads.Positions.WaitFor(ctx, who, view, q.MinPosition); err != nil {
		return model.Page{}, err
	}
	return q.page()
}

// wait waits for the read model of a get.
func (d Deps) wait(ctx context.Context, who model.Caller, view string, q ReadQuery) error {
	return d.Reads.Positions.WaitFor(ctx, who, view, q.MinPosition)
}

// typeOf is the type of T.
func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// ClusterPath is a cluster in a path.
type ClusterPath struct {
	Cluster string `path:"cluster" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label" doc:"Name of the cluster"`
}

// NamespacePath is a namespace of a cluster in a path.
type NamespacePath struct { //nolint:recvcheck // a watch narrows it; all else reads
	ClusterPath
	Namespace string `path:"namespace" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
}

// ObjectPath is something in a namespace of a cluster in a path.
type ObjectPath struct {
	NamespacePath
	Name string `path:"name" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" patternDescription:"a DNS-1123 subdomain"`
}
