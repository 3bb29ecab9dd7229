package preflight

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/crd"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/cluster"
)

const (
	// pageSize and maxObjects bound what is read of one version of one definition (R-CRD-2).
	pageSize   = 250
	maxObjects = 2000
)

var gvkCRD = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// Definitions judges every definition of the plan, in its order.
func Definitions(ctx context.Context, c *cluster.Epoch, q Question) ([]protocol.CRDVerdict, error) {
	var out []protocol.CRDVerdict
	for _, o := range q.Objects {
		if o.GVK.GroupKind() != gvkCRD.GroupKind() {
			continue
		}
		v, err := judge(ctx, c, q, o)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func judge(ctx context.Context, c *cluster.Epoch, q Question, o render.Object) (protocol.CRDVerdict, error) {
	live, err := c.Get(ctx, gvkCRD, "", o.Name)
	if err != nil {
		return protocol.CRDVerdict{}, err
	}
	in := crd.Input{}
	if in.Next, err = json.Marshal(o.Body); err != nil {
		return protocol.CRDVerdict{}, errs.Wrap(errs.Internal, err, "encode %s", o)
	}
	if live != nil {
		if in.Live, err = live.MarshalJSON(); err != nil {
			return protocol.CRDVerdict{}, errs.Wrap(errs.Internal, err, "encode %s of the cluster", o)
		}
		if in.Owners, err = owners(ctx, c, live); err != nil {
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
	more, err := objects(ctx, c, j)
	return j.Verdict(more), err
}

// owners are the operators that say in the definition that they brought it (R-CSV-22), and that are still there: who is
// gone leaves its word behind. Both Chandler's operators and OLM's count.
func owners(ctx context.Context, c *cluster.Epoch, live *unstructured.Unstructured) ([]string, error) {
	var out []string
	for key, owner := range live.GetAnnotations() {
		namespace, name, ok := strings.Cut(owner, "/")
		if !ok || !strings.HasPrefix(key, render.AnnotationInstalledAlongside) {
			continue
		}
		for _, gvk := range []schema.GroupVersionKind{cluster.GVKInstalledOperator, cluster.GVKCSV} {
			o, err := c.Get(ctx, gvk, namespace, name)
			if err != nil {
				return nil, err
			}
			if o != nil {
				out = append(out, owner)
				break
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// objects gives the objects of the cluster to the judge, page by page, and reports whether some were left out.
func objects(ctx context.Context, c *cluster.Epoch, j *crd.Judge) (more bool, err error) {
	group, plural := j.Resource()
	for _, version := range j.Versions() {
		from, read := "", 0
		for {
			items, next, err := c.Page(ctx, schema.GroupVersionResource{Group: group, Version: version, Resource: plural}, pageSize, from)
			if err != nil {
				return false, err
			}
			for i := range items {
				j.Add(version, items[i].Object)
			}
			if read += len(items); next == "" || read >= maxObjects {
				more = more || next != ""
				break
			}
			from = next
		}
	}
	return more, nil
}
