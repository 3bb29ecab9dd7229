package preflight

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/crd"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

const (
	// maxObjects bounds what is read of one version of one definition (R-CRD-2), beside the budget of the whole check.
	maxObjects = 2000
	// firstPage, maxPage and pageBytes bound a page: how large objects are is known from the one before.
	firstPage = 10
	maxPage   = 50
	pageBytes = 4 << 20
)

var gvkCRD = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// Definitions judges every definition of the plan, in its order.
func Definitions(ctx context.Context, c *kube.Epoch, q Question) ([]protocol.CRDVerdict, error) {
	var out []protocol.CRDVerdict
	budget, known := crd.NewBudget(), installed{}
	for _, o := range q.Objects {
		if o.GVK.GroupKind() != gvkCRD.GroupKind() {
			continue
		}
		v, err := judge(ctx, c, q, o, budget, known)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func judge(ctx context.Context, c *kube.Epoch, q Question, o render.Object, budget *crd.Budget, known installed) (
	protocol.CRDVerdict, error,
) {
	var live *unstructured.Unstructured
	var err error
	if q.Vacant == nil || !q.Vacant(o) {
		if live, err = c.Get(ctx, gvkCRD, "", o.Name); err != nil {
			return protocol.CRDVerdict{}, err
		}
	}
	in := crd.Input{Budget: budget}
	if in.Next, err = json.Marshal(o.Body); err != nil {
		return protocol.CRDVerdict{}, errs.Wrap(errs.Internal, err, "encode %s", o)
	}
	if live != nil {
		if in.Live, err = live.MarshalJSON(); err != nil {
			return protocol.CRDVerdict{}, errs.Wrap(errs.Internal, err, "encode %s of the cluster", o)
		}
		if in.Owners, err = known.owners(ctx, c, live); err != nil {
			return protocol.CRDVerdict{}, err
		}
		for _, name := range q.Leaving {
			in.Leaving = append(in.Leaving, q.Namespace+"/"+name)
		}
	}
	j, err := crd.New(in)
	if err != nil {
		return protocol.CRDVerdict{}, err
	}
	more, err := objects(ctx, c, j, budget)
	if err != nil {
		return protocol.CRDVerdict{}, err
	}
	v := j.Verdict(more)
	name := protocol.ObjectRef{Kind: gvkCRD.Kind, Name: v.CRD}.ChoiceName()
	if c := q.Grant.Chosen(name, v.Finding); c != nil && c.Choice == events.ChoiceOverride {
		v.OverriddenBy = c.By
	}
	return v, nil
}

// installed says of operators, as namespace/csv, whether they are there: definitions of one plan mostly name the same.
type installed map[string]bool

// owners are the operators that say in the definition that they brought it (R-CSV-22), and that are still there: who is
// gone leaves its word behind. Both Chandler's operators and OLM's count.
func (i installed) owners(ctx context.Context, c *kube.Epoch, live *unstructured.Unstructured) ([]string, error) {
	var out []string
	for key, owner := range live.GetAnnotations() {
		if !strings.HasPrefix(key, render.AnnotationInstalledAlongside) {
			continue
		}
		there, err := i.has(ctx, c, owner)
		if err != nil {
			return nil, err
		}
		if there {
			out = append(out, owner)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func (i installed) has(ctx context.Context, c *kube.Epoch, owner string) (bool, error) {
	there, known := i[owner]
	namespace, name, ok := strings.Cut(owner, "/")
	if known || !ok {
		return there, nil
	}
	for _, gvk := range []schema.GroupVersionKind{kube.GVKInstalledOperator, kube.GVKCSV} {
		o, err := c.GetMetadata(ctx, gvk, namespace, name)
		if err != nil {
			return false, err
		}
		if o != nil {
			there = true
			break
		}
	}
	i[owner] = there
	return there, nil
}

// Pages is a cluster that lists objects page by page.
type Pages interface {
	Page(ctx context.Context, r schema.GroupVersionResource, limit int64, from string) (
		items []unstructured.Unstructured, next string, err error)
}

// objects gives the objects of the cluster to the judge, page by page, and reports whether some were left out.
func objects(ctx context.Context, c Pages, j *crd.Judge, budget *crd.Budget) (more bool, err error) {
	group, plural := j.Resource()
	for _, version := range j.Versions() {
		limit, from, read := int64(firstPage), "", 0
		for {
			before := budget.Bytes
			items, next, err := c.Page(ctx, schema.GroupVersionResource{
				Group: group, Version: version, Resource: plural,
			}, limit, from)
			if err != nil {
				return false, err
			}
			for i := range items {
				if !j.Add(ctx, version, items[i].Object) {
					return true, ctx.Err()
				}
			}
			if read += len(items); next == "" || read >= maxObjects {
				more = more || next != ""
				break
			}
			from, limit = next, pageOf(before-budget.Bytes, int64(len(items)))
		}
	}
	return more, nil
}

// pageOf is how many objects to ask for after a page of so many bytes and objects.
func pageOf(bytes, objects int64) int64 {
	if bytes <= 0 || objects <= 0 {
		return firstPage
	}
	return max(1, min(maxPage, pageBytes*objects/bytes))
}
