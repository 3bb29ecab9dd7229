package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/chandler-fleet/chandler/libs/catalog/compare"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/limit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/installplans"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/planreview"
	"github.com/chandler-fleet/chandler/services/gateway/seconds"
)

const (
	// maxObjectBytes bounds the objects of one page: a definition has up to 1.5 MB, and one object is always given.
	maxObjectBytes = 4 << 20
	// maxDiffBytes bounds a unified diff: people read some thousand lines at most, and a first install of the largest
	// published bundle has 7 MB.
	maxDiffBytes = 16 << 20
	// maxShownRights bounds the rights of one bundle; the largest real operator has 2,000.
	maxShownRights = 5000
	// maxReviews bounds the plans that a process shows at a time: each is rendered anew, which takes a processor and
	// memory of many times its manifests, while other requests wait.
	maxReviews = 2
	// lineReviews bounds the requests of one identity that wait for that: a page of a portal asks for a few at once.
	lineReviews = 8
	// reviewPlaceWait is how long a request waits for its turn: real plans take some hundred milliseconds.
	reviewPlaceWait = 2 * time.Second
)

const (
	typeJSON = "application/json"
	typeText = "text/plain"
)

// reviewHandlers show what somebody should see of a plan before they approve it.
type reviewHandlers struct {
	Deps

	turns *limit.Turns // one at a time for each identity, so that one does not take the places of all
}

func newReviewHandlers(d Deps) *reviewHandlers {
	return &reviewHandlers{Deps: d, turns: limit.NewTurns(maxReviews, 1, lineReviews, reviewPlaceWait)}
}

func (h *reviewHandlers) register(a *API) {
	register(a, ofObject(access.Get, access.InstallPlans),
		operation(http.MethodGet, "/installplans/{id}/objects", "list-installplan-objects", tagPlans,
			"List every object of a plan as it will be applied, before the overlays of its cluster: the same bytes that "+
				"the plan's digest binds"), h.listInstallplanObjects)
	register(a, ofObject(access.Get, access.InstallPlans),
		classed(operation(http.MethodGet, "/installplans/{id}/rights", "get-installplan-rights", tagPlans,
			"Get everything that the operators of a plan will be allowed to do and ask of the cluster, in words and as "+
				"rules, with what is dangerous marked"), limit.List), h.getInstallplanRights)
	diff := classed(operation(http.MethodGet, "/installplans/{id}/diff", "get-installplan-diff", tagPlans,
		"Get what a plan changes of what is installed, by object; as a unified diff with Accept: text/plain"), limit.List)
	diff.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
		typeJSON: {Schema: a.huma.OpenAPI().Components.Schemas.Schema(typeOf[model.PlanDiff](), true, "PlanDiff")},
		typeText: {Schema: &huma.Schema{Type: huma.TypeString, Description: "Unified diff of YAML"}},
	}}}
	register(a, ofObject(access.Get, access.InstallPlans), diff, h.getInstallplanDiff)
}

// reviewed makes an answer of what is seen of a plan, while it holds a place.
func reviewed[T any](
	ctx context.Context, h *reviewHandlers, who model.Caller, at PlanPath, q ReadQuery,
	answer func(installplans.Review) (T, error),
) (out T, err error) {
	if err := h.wait(ctx, who, installplans.Name, q); err != nil {
		return out, err
	}
	id, err := h.plan(ctx, who, at)
	if err != nil {
		return out, err
	}
	leave, err := h.enter(ctx, who)
	if err != nil {
		return out, err
	}
	defer leave()
	review, err := h.Reads.InstallPlans.Review(ctx, who, id)
	if err != nil {
		return out, err
	}
	return answer(review)
}

// enter waits for a place, and returns what gives it back.
func (h *reviewHandlers) enter(ctx context.Context, who model.Caller) (leave func(), err error) {
	queued, ok := h.turns.Queue(identity(who))
	if !ok {
		return nil, noPlace("%d requests of yours want to show plans: ask for one at a time", lineReviews)
	}
	err = queued.Wait(ctx)
	if err == nil {
		return queued.Leave, nil
	}
	queued.Leave()
	if errors.Is(err, limit.ErrOwn) {
		return nil, noPlace("another plan is being shown to you: ask for one at a time")
	}
	return nil, errs.New(errs.Unavailable, "too many plans are being shown; try again in a moment")
}

// behind is where a page of a list begins whose cursor is one number.
func behind(after []string) (int, error) {
	if len(after) == 0 {
		return 0, nil
	}
	n, err := strconv.Atoi(after[0])
	if err != nil || n < 0 || len(after) != 1 {
		return 0, readmodel.ForeignCursor()
	}
	return n, nil
}

type listInstallplanObjectsInput struct {
	PlanPath
	ListQuery
	Kind string `query:"kind" maxLength:"63" doc:"Only objects of this kind, such as Deployment"`
}

func (h *reviewHandlers) listInstallplanObjects(
	ctx context.Context, who model.Caller, in *listInstallplanObjectsInput,
) (*listOutput[model.PlanObject], error) {
	page, err := in.page()
	if err != nil {
		return nil, err
	}
	done, err := behind(page.After)
	if err != nil {
		return nil, err
	}
	return reviewed(ctx, h, who, in.PlanPath, ReadQuery{in.MinPosition},
		func(review installplans.Review) (*listOutput[model.PlanObject], error) {
			items, next := objectsOf(review, in.Kind, done, page.Limit)
			return listed(items, next, nil)
		})
}

// objectsOf is one page of the objects of a plan, by the numbers of their steps.
func objectsOf(review installplans.Review, kind string, done, limit int) (items []model.PlanObject, next []string) {
	size := 0
	for i := range review.Bundles {
		b := &review.Bundles[i]
		for j, o := range b.To.Objects {
			step := b.Steps[j]
			if step <= done || kind != "" && o.GVK.Kind != kind {
				continue
			}
			if len(items) == limit || len(items) > 0 && size+len(o.Shown) > maxObjectBytes {
				return items, []string{strconv.Itoa(items[len(items)-1].Step)}
			}
			size += len(o.Shown)
			items = append(items, model.PlanObject{
				Step: step, Resolving: o.Resolving, Group: o.GVK.Group, Version: o.GVK.Version, Kind: o.GVK.Kind,
				Namespace: o.Namespace, Name: o.Name, Digest: string(o.Digest), Hidden: o.Hidden, Object: o.Shown,
			})
		}
	}
	return items, nil
}

type getInstallplanRightsInput struct {
	PlanPath
	ReadQuery
}

func (h *reviewHandlers) getInstallplanRights(
	ctx context.Context, who model.Caller, in *getInstallplanRightsInput,
) (*output[model.PlanRights], error) {
	return reviewed(ctx, h, who, in.PlanPath, in.ReadQuery,
		func(review installplans.Review) (*output[model.PlanRights], error) { return allRights(ctx, review) })
}

func allRights(ctx context.Context, review installplans.Review) (*output[model.PlanRights], error) {
	p := review.Plan
	out := model.PlanRights{
		Plan: p.ID, Name: p.Name, Cluster: p.Cluster, Namespace: p.Namespace, Digest: p.Digest,
		Bundles: []model.BundleRights{}, SuggestedLabels: []model.SuggestedLabel{},
	}
	var suggested planreview.Suggestions
	if at := review.Place; at.Known {
		out.Group = &model.RightsPlace{All: at.All, Namespaces: append([]string{}, at.Namespaces...)}
	}
	for i := range review.Bundles {
		if err := ctx.Err(); err != nil {
			return nil, errs.Wrap(errs.Unavailable, err, "tell the rights of plan %s", p.Name)
		}
		b, err := rightsOf(&review.Bundles[i], review.Place)
		if err != nil {
			return nil, err
		}
		out.Bundles = append(out.Bundles, b)
		suggested.Add(b.CSV, review.Bundles[i].To.Objects)
	}
	for _, l := range suggested.Labels() {
		out.SuggestedLabels = append(out.SuggestedLabels, model.SuggestedLabel(l))
	}
	out.SuggestionsIgnored = suggested.Ignored
	return read(out, nil)
}

func rightsOf(b *installplans.ReviewedBundle, at planreview.Place) (model.BundleRights, error) {
	r, err := planreview.RightsOf(b.To, b.From, at)
	if err != nil {
		return model.BundleRights{}, err
	}
	out := model.BundleRights{
		ReviewBase: b.ReviewBase, Dangers: []model.PlanDanger{}, Rights: []model.OperatorRight{}, Lost: r.Lost,
		Demands: []model.OperatorDemand{}, MoreDemands: r.MoreDemands,
		PodSecurity: podSecurity(b.To.Objects),
	}
	if b.From == nil {
		out.Lost = nil
	}
	for _, d := range planreview.Dangers(r, at) {
		out.Dangers = append(out.Dangers, model.PlanDanger(d))
		if d.Code == compare.Unknown || d.Code == compare.UnknownRole {
			out.Unknown += d.Count
		}
	}
	for _, x := range r.Rights {
		if len(out.Rights) == maxShownRights {
			out.MoreRights = len(r.Rights) - maxShownRights
			break
		}
		out.Rights = append(out.Rights, model.OperatorRight{
			Right: x.Right, Words: x.Words, Reason: x.Reason, Everywhere: at.Everywhere(x.Right), New: x.New,
		})
	}
	for _, x := range r.Demands {
		out.Demands = append(out.Demands, model.OperatorDemand(x))
	}
	return out, nil
}

func podSecurity(objects []planreview.Object) model.PodSecurityDemand {
	out := model.PodSecurityDemand{Level: "unknown", Why: []model.PodSecurityReason{}}
	s, err := planreview.PodSecurityOf(objects)
	if err != nil {
		out.Detail = err.Error()
		return out
	}
	out.Level = s.Level
	for _, why := range s.Why {
		out.Why = append(out.Why, model.PodSecurityReason(why))
	}
	return out
}

type getInstallplanDiffInput struct {
	PlanPath
	ListQuery
	text bool
}

// Resolve chooses the unified diff where the client asks for text and not for JSON.
func (in *getInstallplanDiffInput) Resolve(ctx huma.Context) []error {
	in.text = wantsText(ctx)
	return nil
}

// wantsText says whether a client asks for text and not for JSON.
func wantsText(ctx huma.Context) bool {
	accept := ctx.Header("Accept")
	return accept != "" && admits(accept, typeText) && !admits(accept, typeJSON)
}

// diffOutput is JSON, or a unified diff.
type diffOutput struct {
	ContentType string `header:"Content-Type"`
	Vary        string `header:"Vary"`
	Body        []byte
}

func (h *reviewHandlers) getInstallplanDiff(
	ctx context.Context, who model.Caller, in *getInstallplanDiffInput,
) (*diffOutput, error) {
	page, err := in.page()
	if err != nil {
		return nil, err
	}
	done, err := behind(page.After)
	if err != nil {
		return nil, err
	}
	return reviewed(ctx, h, who, in.PlanPath, ReadQuery{in.MinPosition},
		func(review installplans.Review) (*diffOutput, error) {
			out := &diffOutput{ContentType: typeJSON, Vary: "Accept"}
			if in.text {
				out.ContentType = typeText + "; charset=utf-8"
				var err error
				out.Body, err = unified(ctx, review)
				return out, err
			}
			diff, err := diffOf(review, done, page.Limit)
			if err == nil {
				out.Body, err = json.Marshal(seconds.Of(diff))
			}
			return out, errs.Wrap(errs.Internal, err, "write the difference")
		})
}

// diffOf is one page of what a plan changes.
func diffOf(review installplans.Review, done, limit int) (model.PlanDiff, error) {
	out := model.PlanDiff{Items: []model.ObjectChange{}, Bundles: []model.ReviewBase{}, Digest: review.Plan.Digest}
	n := 0
	for i := range review.Bundles {
		b := &review.Bundles[i]
		out.Bundles = append(out.Bundles, b.ReviewBase)
		changes, err := changesOf(b)
		if err != nil {
			return out, err
		}
		for _, c := range changes {
			n++
			switch {
			case n <= done:
			case len(out.Items) < limit:
				out.Items = append(out.Items, changed(b.CSV, c))
			case out.Next == "":
				if out.Next, err = cursor(strconv.Itoa(n - 1)); err != nil {
					return out, err
				}
			}
		}
	}
	return out, nil
}

// changesOf are those of one bundle; none where it is not known what is installed.
func changesOf(b *installplans.ReviewedBundle) ([]planreview.Change, error) {
	switch {
	case b.State == model.ReviewUnknown:
		return nil, nil
	case b.From == nil:
		return planreview.Diff(nil, b.To.Objects)
	}
	return planreview.Diff(b.From.Objects, b.To.Objects)
}

func changed(csv string, c planreview.Change) model.ObjectChange {
	o := c.Of()
	out := model.ObjectChange{
		Change: c.Change, Area: c.Area, Resolving: csv, Group: o.GVK.Group, Version: o.GVK.Version, Kind: o.GVK.Kind,
		Namespace: o.Namespace, Name: o.Name, More: c.More, CRD: c.CRD,
		Minor: c.Minor,
	}
	if c.Was != nil {
		out.From, out.Hidden = string(c.Was.Digest), c.Was.Hidden
	}
	if c.Is != nil {
		out.To, out.Hidden = string(c.Is.Digest), out.Hidden || c.Is.Hidden
	}
	if c.Was != nil && c.Was.Name != o.Name {
		out.Was = c.Was.Name
	}
	for _, f := range c.Fields {
		out.Fields = append(out.Fields, model.FieldChange{Path: f.Path, From: f.Was, To: f.Is, Large: f.Large})
	}
	for _, i := range c.Images {
		out.Images = append(out.Images, model.ImageChange{Container: i.Container, From: i.Was, To: i.Is})
	}
	return out
}

// unified is the whole difference as text. Lines that begin with # are comments, which patch passes over.
func unified(ctx context.Context, review installplans.Review) ([]byte, error) {
	var out bytes.Buffer
	for i := range review.Bundles {
		b := &review.Bundles[i]
		switch b.State {
		case model.ReviewFirst:
			out.WriteString("# " + b.CSV + ": nothing of it is installed\n")
		case model.ReviewCompared:
			out.WriteString("# " + b.CSV + ": compared with " + b.Replaces + "\n")
		default:
			out.WriteString("# " + b.CSV + ": unknown: " + strings.ReplaceAll(b.Detail, "\n", " ") + "\n")
		}
		changes, err := changesOf(b)
		if err != nil {
			return nil, err
		}
		for j, c := range changes {
			if err := ctx.Err(); err != nil {
				return nil, errs.Wrap(errs.Unavailable, err, "compare what %s changes", b.CSV)
			}
			text, err := c.Unified()
			if err != nil {
				return nil, err
			}
			if out.Len()+len(text) > maxDiffBytes {
				out.WriteString("# " + strconv.Itoa(len(changes)-j) + " more objects of " + b.CSV +
					" differ, and are beyond the bound of this answer: read them as JSON\n")
				break
			}
			out.WriteString(text)
		}
	}
	return out.Bytes(), nil
}
