package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// ListQuery are the parameters of every list.
type ListQuery struct {
	Limit       int    `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"At most so many items"`
	Cursor      string `query:"cursor" maxLength:"2048" doc:"next of the page before"`
	MinPosition string `query:"minPosition" maxLength:"128" doc:"Wait until the list shows this position"`
}

// ReadQuery are the parameters of every get.
type ReadQuery struct {
	MinPosition string `query:"minPosition" maxLength:"128" doc:"Wait until the answer shows this position"`
}

// list is one page.
type list[T any] struct {
	Items []T    `json:"items" nullable:"false"`
	Next  string `json:"next,omitempty" doc:"Cursor of the next page; absent on the last"`
}

type listOutput[T any] struct{ Body list[T] }

type output[T any] struct{ Body T }

// written is the answer to a write.
type written[T any] struct {
	Location string `header:"Location" doc:"Of what was made"`
	Position string `header:"Chandler-Position" doc:"Of the write's event: epoch-number, or stream@version"`
	Body     T
}

func wrote[T any](body T, position, location string, err error) (*written[T], error) {
	if err != nil {
		return nil, err
	}
	return &written[T]{Location: location, Position: position, Body: body}, nil
}

func read[T any](body T, err error) (*output[T], error) {
	if err != nil {
		return nil, err
	}
	return &output[T]{Body: body}, nil
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
	if err := d.Reads.Positions.WaitFor(ctx, who.Tenant, view, q.MinPosition); err != nil {
		return model.Page{}, err
	}
	return q.page()
}

// wait waits for the read model of a get.
func (d Deps) wait(ctx context.Context, who model.Caller, view string, q ReadQuery) error {
	return d.Reads.Positions.WaitFor(ctx, who.Tenant, view, q.MinPosition)
}

// typeOf is the type of T.
func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// ClusterPath is a cluster in a path.
type ClusterPath struct {
	Cluster string `path:"cluster" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label" doc:"Name of the cluster"`
}

// NamespacePath is a namespace of a cluster in a path.
type NamespacePath struct {
	ClusterPath
	Namespace string `path:"namespace" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
}

// ObjectPath is something in a namespace of a cluster in a path.
type ObjectPath struct {
	NamespacePath
	Name string `path:"name" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" patternDescription:"a DNS-1123 subdomain"`
}
