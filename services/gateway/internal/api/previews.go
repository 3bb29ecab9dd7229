package api

import (
	"cmp"
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/limit"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/preview"
)

const (
	tagPreviews  = "Previews"
	pathPreviews = "/previews"
	// scopeParts are cluster and namespace in a cursor.
	scopeParts = 2
)

// DryRunQuery asks for a preview in the place of a write.
type DryRunQuery struct {
	DryRun bool `query:"dryRun" doc:"Nothing is written: the answer has status 200 and is a preview of what the write would lead to, after the same checks. It can be applied by its id."`
}

func (q DryRunQuery) dry() bool { return q.DryRun }

// PreviewPath is a preview in a path.
type PreviewPath struct {
	ID string `path:"id" format:"uuid" doc:"Id of the preview"`
}

// PageQuery are the parameters of a paged answer about namespaces.
type PageQuery struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"Namespaces that are resolved for one page"`
	Cursor string `query:"cursor" maxLength:"2048" doc:"next of the page before"`
}

// previewHandlers are the operations on previews.
type previewHandlers struct{ Deps }

func (h previewHandlers) register(a *API) {
	register(a, whereAsked(access.Create, access.Previews),
		intended(classed(operation(http.MethodPost, pathPreviews, "create-preview", tagPreviews,
			"Ask what changes would lead to, on every namespace that they touch: the very plans that would be proposed"),
			limit.List)),
		h.createPreview)
	register(a, ofObject(access.Get, access.Previews),
		operation(http.MethodGet, pathPreviews+"/{id}", "get-preview", tagPreviews,
			"Read a preview, page by page"), h.getPreview)
	register(a, ofObject(access.Create, access.Previews),
		operation(http.MethodPost, pathPreviews+"/{id}/apply", "apply-preview", tagPreviews,
			"Carry out what was previewed, as long as nothing that it rests on has changed; 409 names what did. Applying "+
				"again answers the same"), h.applyPreview)
	register(a, whereAsked(access.Get, access.Previews), classed(operation(http.MethodPost, "/shadow", "shadow",
		tagPreviews, "Make recorded decisions again, by this version or beside a catalog's revision or a policy, and list what "+
			"comes out differently"), limit.List), h.shadow)
	register(a, fleetWide(access.List, access.Questions),
		operation(http.MethodGet, "/questions", "list-questions", tagPreviews,
			"List who asked what, of questions that leave no event, newest first; for administrators"), h.listQuestions)
}

// after reads the cursor of a page.
func (q PageQuery) after() (previewapi.Scope, error) {
	p, err := ListQuery{Cursor: q.Cursor}.page()
	if err != nil || q.Cursor == "" {
		return previewapi.Scope{}, err
	}
	if len(p.After) != scopeParts {
		return previewapi.Scope{}, errs.New(errs.Invalid, "the cursor does not belong to a preview").At("query.cursor",
			"cursor")
	}
	return previewapi.Scope{Cluster: p.After[0], Namespace: p.After[1]}, nil
}

func previewed(page previewapi.Page, kept preview.Kept, err error) (*output[model.Preview], error) {
	if err != nil {
		return nil, err
	}
	p := model.PreviewOf(page)
	p.Applicable, p.NotApplicable, p.Warnings = kept.NotApplicable == "", kept.NotApplicable, kept.Warnings
	if page.Next != nil {
		if p.Next, err = cursor(page.Next.Cluster, page.Next.Namespace); err != nil {
			return nil, err
		}
	}
	return &output[model.Preview]{Body: p}, nil
}

// tried is the answer to a write that may be a dry run: what was written, or a preview.
type tried struct {
	Status   int
	Location string `header:"Location" doc:"Of what was made, or of the preview"`
	Position string `header:"Chandler-Position" doc:"Of the write's event: epoch-number, or stream@version"`
	Tagged
	Body any
}

// wroteOr is the answer to a write that was no dry run.
func wroteOr[T any](status int, body T, position, location string, err error) (*tried, error) {
	if err != nil {
		return nil, err
	}
	return &tried{Status: status, Location: location, Position: position, Tagged: tagOf(body), Body: body}, nil
}

// dryRun answers with a preview of one change in one namespace; "" and "" are all.
func (d Deps) dryRun(
	ctx context.Context, who model.Caller, c model.PreviewChange, how model.Validate, cluster, namespace string,
) (*tried, error) {
	at := access.Target{Cluster: cluster, Namespace: namespace}
	if !who.May(access.Create, access.Previews, at) {
		return nil, access.Denied(access.Create, access.Previews, at)
	}
	in := model.PreviewRequest{Changes: []model.PreviewChange{c}, Cluster: cluster, Namespace: namespace}
	out, err := previewed(d.Intents.Previews.Create(ctx, who, in, how, 0))
	if err != nil {
		return nil, err
	}
	return &tried{Status: http.StatusOK, Location: prefix + pathPreviews + "/" + out.Body.ID, Body: out.Body}, nil
}

// triable documents an operation whose answer is a T or, as a dry run, a preview.
func triable[T any](a *API, op huma.Operation) huma.Operation {
	schemas := a.huma.OpenAPI().Components.Schemas
	made, previewed := schemas.Schema(typeOf[T](), true, ""), schemas.Schema(typeOf[model.Preview](), true, "")
	answer := func(description string, s *huma.Schema) *huma.Response {
		return &huma.Response{
			Description: description, Content: map[string]*huma.MediaType{"application/json": {Schema: s}},
		}
	}
	status := cmp.Or(op.DefaultStatus, http.StatusOK)
	if status == http.StatusOK {
		op.Responses = map[string]*huma.Response{
			"200": answer("OK; with dryRun=true the preview", &huma.Schema{AnyOf: []*huma.Schema{made, previewed}}),
		}
		return op
	}
	op.Responses = map[string]*huma.Response{
		strconv.Itoa(status): answer(http.StatusText(status), made), "200": answer("The preview, with dryRun=true",
			previewed),
	}
	return op
}

type createPreviewInput struct {
	ValidateQuery
	Limit int `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"Namespaces that are resolved for the first page"`
	Body  model.PreviewRequest
}

func (h previewHandlers) createPreview(
	ctx context.Context, who model.Caller, in *createPreviewInput,
) (*output[model.Preview], error) {
	return previewed(h.Intents.Previews.Create(ctx, who, in.Body, model.Validate(in.Validate), in.Limit))
}

type getPreviewInput struct {
	PreviewPath
	PageQuery
}

func (h previewHandlers) getPreview(
	ctx context.Context, who model.Caller, in *getPreviewInput,
) (*output[model.Preview], error) {
	after, err := in.after()
	if err != nil {
		return nil, err
	}
	return previewed(h.Intents.Previews.Read(ctx, who, uuid.MustParse(in.ID), after, in.Limit))
}

func (h previewHandlers) applyPreview(
	ctx context.Context, who model.Caller, in *PreviewPath,
) (*written[model.PreviewApplied], error) {
	p, err := h.Intents.Previews.Apply(ctx, who, uuid.MustParse(in.ID))
	return wrote(p, p.Position, "", err)
}

type shadowInput struct{ Body model.ShadowRequest }

func (h previewHandlers) shadow(ctx context.Context, who model.Caller, in *shadowInput) (*output[model.Shadow], error) {
	p, err := h.Intents.Previews.Shadow(ctx, who, in.Body)
	return read(model.Shadow(p), err)
}

type listQuestionsInput struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"At most so many items"`
	Cursor string `query:"cursor" maxLength:"2048" doc:"next of the page before"`
}

func (h previewHandlers) listQuestions(
	ctx context.Context, who model.Caller, in *listQuestionsInput,
) (*listOutput[model.Question], error) {
	page, err := ListQuery{Limit: in.Limit, Cursor: in.Cursor}.page()
	if err != nil {
		return nil, err
	}
	return listed(h.Intents.Audit.List(ctx, who, page))
}
