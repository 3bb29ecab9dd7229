package app

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/internal/store"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// refusal is why a bundle cannot be installed whatever is tried again; cluster says that it follows from what is
// known of the cluster, and may end with that.
type refusal struct {
	bundle, why string
	cluster     bool
}

// renderer renders the bundles of one scope. It keeps what came of each: who asks what would help asks for the same
// bundle many times.
type renderer struct {
	w    *worker
	l    store.Loaded
	done map[source]rendering
	csvs map[string]bundle.CSV // by digest of the content
}

// source is what a rendering is made of: the digest of the content, and the commitment of the configuration.
type source struct{ content, config string }

// rendering is what came of a bundle.
type rendering struct {
	csv   bundle.CSV
	steps []installplan.Step
	err   error
}

func (w *worker) renderer(l store.Loaded) *renderer {
	return &renderer{w: w, l: l, done: map[source]rendering{}, csvs: map[string]bundle.CSV{}}
}

// render makes the steps of a component as it would be installed under the operator groups of its namespace.
func (r *renderer) render(ctx context.Context, c resolution.Component, groups []decide.Group) (
	[]installplan.Step, *refusal, error,
) {
	var steps []installplan.Step
	for _, b := range c.Bundles {
		if b.Content == "" {
			return nil, &refusal{bundle: b.CSV, why: fmt.Sprintf(
					"bundle %s of catalog %s cannot be installed: its manifests are not in the catalog", b.CSV,
					b.Catalog)},
				nil
		}
		d, err := r.bundle(ctx, b)
		cluster := false
		if err == nil && len(groups) == 1 {
			err = r.l.Fit(d.csv, groups[0])
			cluster = err != nil
		}
		switch errs.KindOf(err) {
		case "":
			steps = append(steps, d.steps...)
		case errs.Invalid, errs.Unprocessable, errs.TooLarge, errs.NotFound:
			return nil, &refusal{b.CSV, fmt.Sprintf("bundle %s of catalog %s cannot be installed: %v", b.CSV, b.Catalog,
				err), cluster}, nil
		default:
			return nil, nil, err
		}
	}
	return steps, nil, nil
}

// bundle renders one bundle. That its content cannot be read for now is not kept.
func (r *renderer) bundle(ctx context.Context, b resolution.Planned) (rendering, error) {
	o := source{content: string(b.Content), config: r.commitment(b)}
	if d, ok := r.done[o]; ok {
		return d, d.err
	}
	content, err := r.w.views.Content(ctx, r.l.Tenant, o.content)
	if err != nil {
		return rendering{}, err
	}
	config, err := r.w.store.Documents.Config(ctx, r.l.Tenant, o.config)
	if err != nil {
		return rendering{}, err
	}
	var d rendering
	d.csv, d.steps, d.err = stepsOf(r.w.rendering, content, r.l.Scope.Namespace, config)
	r.done[o] = d
	return d, d.err
}

// csv is the ClusterServiceVersion of a bundle that is installed.
func (r *renderer) csv(ctx context.Context, content string) (bundle.CSV, error) {
	if c, ok := r.csvs[content]; ok {
		return c, nil
	}
	b, err := r.w.views.Content(ctx, r.l.Tenant, content)
	if err != nil {
		return bundle.CSV{}, err
	}
	c, err := b.CSV()
	if err == nil {
		r.csvs[content] = c
	}
	return c, err
}

// commitment names the configuration of the first of the bundle's subscriptions; dependencies have none.
func (r *renderer) commitment(b resolution.Planned) string {
	for _, name := range b.Subscriptions {
		for _, sub := range r.l.Subscriptions {
			if sub.Name == name {
				return sub.Spec.Config
			}
		}
	}
	return ""
}

// stepsOf renders a bundle by the newest rules.
func stepsOf(by *render.Versions, c bundle.Content, namespace string, config json.RawMessage) (
	bundle.CSV, []installplan.Step, error,
) {
	csv, err := c.CSV()
	if err != nil {
		return csv, nil, err
	}
	objects, err := by.Render(by.Newest(), render.Input{Content: c, Namespace: namespace, Config: config})
	if err != nil {
		return csv, nil, err
	}
	steps := make([]installplan.Step, 0, len(objects))
	for _, o := range objects {
		d, err := o.Digest()
		if err != nil {
			return csv, nil, errs.Wrap(errs.Internal, err, "digest of %s", o)
		}
		steps = append(steps, installplan.Step{
			Resolving: o.Resolving, Group: o.GVK.Group, Version: o.GVK.Version, Kind: o.GVK.Kind,
			Namespace: o.Namespace, Name: o.Name, Digest: d,
		})
	}
	return csv, steps, nil
}
