package previews

import (
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// place is where an error says that the input is wrong, "" for none.
func place(err error) string {
	if e, ok := err.(*errs.Error); ok { //nolint:errorlint // what the rules return, not what wraps it
		return e.Field
	}
	return ""
}

// TestChangeIsReadStrictly: a change is of one thing, and says all that carrying it out needs.
func TestChangeIsReadStrictly(t *testing.T) {
	t.Parallel()
	yes := true
	spec := &model.SubscriptionSpec{Package: "etcd"}
	sub := model.PreviewSubscription{
		Cluster: "harbour", Namespace: "ops", Name: "etcd", Action: model.PreviewCreate, Spec: spec,
	}
	without := sub
	without.Spec = nil
	deleted := without
	deleted.Action = model.PreviewDelete
	for _, c := range []struct {
		name  string
		in    model.PreviewChange
		at    string
		about string
	}{
		{"a subscription", model.PreviewChange{Subscription: &sub}, "", "create subscription harbour/ops/etcd"},
		{"one without a spec", model.PreviewChange{Subscription: &without}, "/changes/0/subscription/spec", ""},
		{"its end needs none", model.PreviewChange{Subscription: &deleted}, "", "delete subscription harbour/ops/etcd"},
		{"nothing", model.PreviewChange{}, "/changes/0", ""},
		{"two things", model.PreviewChange{
			Subscription: &sub,
			Catalog:      &model.PreviewCatalog{Name: "fleet", Remove: true},
		}, "/changes/0", ""},
		{
			"a catalog's end",
			model.PreviewChange{Catalog: &model.PreviewCatalog{Name: "fleet", Remove: true}},
			"",
			"remove catalog fleet",
		},
		{"a catalog's end and settings", model.PreviewChange{
			Catalog: &model.PreviewCatalog{Name: "fleet", Remove: true, Disabled: &yes},
		}, "/changes/0/catalog", ""},
		{
			"a catalog and nothing of it",
			model.PreviewChange{Catalog: &model.PreviewCatalog{Name: "fleet"}},
			"/changes/0/catalog", "",
		},
		{
			"a policy without a spec",
			model.PreviewChange{ApprovalPolicy: &model.PreviewPolicy{Name: "p"}},
			"/changes/0/approvalPolicy", "",
		},
		{
			"a policy's end",
			model.PreviewChange{ApprovalPolicy: &model.PreviewPolicy{Name: "p", Remove: true}},
			"",
			"remove approvalpolicy p",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := (&Service{}).change(c.in, "", "/changes/0")
			if place(err) != c.at || (err == nil) != (c.at == "") || err == nil && got.about != c.about {
				t.Errorf("read %q, %v at %q; want %q at %q", got.about, err, place(err), c.about, c.at)
			}
		})
	}
}

// TestNarrowedPreviewIsNotApplied: what reaches beyond the namespaces that were looked at cannot be carried out after
// it.
func TestNarrowedPreviewIsNotApplied(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		reach  previewapi.Scope
		in     model.PreviewRequest
		beyond bool
	}{
		{"not narrowed", previewapi.Scope{}, model.PreviewRequest{}, false},
		{
			"narrowed to its own namespace",
			previewapi.Scope{Cluster: "harbour", Namespace: "ops"},
			model.PreviewRequest{Cluster: "harbour", Namespace: "ops"},
			false,
		},
		{
			"narrowed to its own cluster",
			previewapi.Scope{Cluster: "harbour"},
			model.PreviewRequest{Cluster: "harbour"},
			false,
		},
		{
			"narrowed to a namespace of the cluster that it reaches",
			previewapi.Scope{Cluster: "harbour"},
			model.PreviewRequest{Cluster: "harbour", Namespace: "ops"},
			true,
		},
		{"narrowed to another one", previewapi.Scope{Cluster: "harbour"}, model.PreviewRequest{Cluster: "other"}, true},
		{"the whole fleet", previewapi.Scope{}, model.PreviewRequest{Cluster: "harbour"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := change{about: "x", reach: c.reach}.beyond(c.in)
			if (got != "") != c.beyond || c.beyond && !strings.Contains(got, "narrowed") {
				t.Errorf("beyond: %q, want %v", got, c.beyond)
			}
		})
	}
}

// TestOvertaken: what could be done when the preview was made, and cannot now, is a conflict; other refusals stay.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	for kind, want := range map[errs.Kind]errs.Kind{
		errs.NotFound: errs.Conflict, errs.AlreadyExists: errs.Conflict,
		errs.Invalid: errs.Invalid, errs.Forbidden: errs.Forbidden,
	} {
		if got := errs.KindOf(overtaken(errs.New(kind, "x"))); got != want {
			t.Errorf("%s became %s, want %s", kind, got, want)
		}
	}
}
