package previews

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/approvalpolicy"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/preview"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// Shadow makes recorded decisions again beside something else, page by page; only the audit is written.
func (s *Service) Shadow(ctx context.Context, who model.Caller, in model.ShadowRequest) (previewapi.ShadowPage, error) {
	var page previewapi.ShadowPage
	q := previewapi.ShadowQuestion{
		Tenant: who.Tenant, Cluster: in.Cluster, Namespace: in.Namespace, Catalog: in.Catalog, Revision: in.Revision,
		After: in.Cursor, Limit: in.Limit,
	}
	for _, at := range []struct {
		field, text string
		into        **events.Position
	}{{"/from", in.From, &q.From}, {"/to", in.To, &q.To}} {
		if at.text == "" {
			continue
		}
		p, err := events.ParsePosition(at.text)
		if err != nil {
			return page, errs.New(errs.Invalid, "%q is not a position: want epoch-number, such as 1-42",
				at.text).At(at.field, "position")
		}
		*at.into = &p
	}
	var err error
	if q.Policy, err = shadowPolicy(in.Policy); err != nil {
		return page, err
	}
	about := strings.TrimSpace("decisions " + in.Catalog + " " + in.Revision)
	if in.Policy != nil {
		about += " approvalpolicy " + in.Policy.Name
	}
	// For each page: a cursor is anybody's to write, so that it is no sign of a page before.
	if err := s.record(ctx, who, preview.ActionShadow, about, uuid.Nil); err != nil {
		return page, err
	}
	return s.Resolver.Shadow(ctx, q)
}

// shadowPolicy checks a policy as the intent that sets it does.
func shadowPolicy(in *model.PreviewPolicy) (*events.ApprovalPolicySet, error) {
	if in == nil {
		return nil, nil //nolint:nilnil // none is asked about
	}
	if in.Spec == nil || in.Remove {
		return nil, errs.New(errs.Invalid, "a shadow run takes an approval policy with a spec").At(
			"/approvalPolicy/spec", rule.Required)
	}
	list, err := approvalpolicy.Decide(approvalpolicy.State{Name: in.Name}, approvalpolicy.Set{Spec: in.Spec.Event()})
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		if set, ok := p.(events.ApprovalPolicySet); ok {
			return &set, nil
		}
	}
	return nil, errs.New(errs.Internal, "a new approval policy has no event")
}
