package resolverclient

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/previewapi"
)

// Preview returns the first page of what changes would lead to.
func (c Client) Preview(ctx context.Context, q previewapi.Question) (page previewapi.Page, err error) {
	err = c.preview(ctx, previewapi.PreviewSubject, q, &page)
	return page, err
}

// ReadPreview returns another page of a preview.
func (c Client) ReadPreview(ctx context.Context, q previewapi.PageRequest) (page previewapi.Page, err error) {
	err = c.preview(ctx, previewapi.ReadSubject, q, &page)
	return page, err
}

// CheckPreview compares a part of a preview with what it would be now.
func (c Client) CheckPreview(ctx context.Context, q previewapi.PageRequest) (v previewapi.CheckResult, err error) {
	err = c.preview(ctx, previewapi.CheckSubject, q, &v)
	return v, err
}

// Shadow makes recorded decisions again beside something else.
func (c Client) Shadow(ctx context.Context, q previewapi.ShadowQuestion) (page previewapi.ShadowPage, err error) {
	err = c.preview(ctx, previewapi.ShadowSubject, q, &page)
	return page, err
}

// AfterRemoval returns who depends on an operator, and what would be decided once it is gone.
func (c Client) AfterRemoval(
	ctx context.Context, q previewapi.RemovalQuestion,
) (out previewapi.RemovalPreview, err error) {
	err = c.preview(ctx, previewapi.RemovalSubject, q, &out)
	return out, err
}

// FleetPreview returns what a fleet subscription leads to, or would lead to.
func (c Client) FleetPreview(ctx context.Context, q previewapi.FleetQuestion) (page previewapi.FleetPage, err error) {
	err = c.preview(ctx, previewapi.FleetSubject, q, &page)
	return page, err
}

func (c Client) preview(ctx context.Context, subject string, in, out any) error {
	err := c.Bus.Call(ctx, subject, in, out)
	if errs.Is(err, errs.Unavailable) {
		c.Slog.WarnContext(ctx, "the resolver does not answer", "subject", subject, "error", err)
		return errs.New(errs.Unavailable,
			"the resolver does not answer at the moment, so the result of this change is unknown; nothing was "+
				"changed: try again in a moment")
	}
	return err
}
