package app

import (
	"context"
	"fmt"
	"slices"

	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/preview"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/suggestion"
)

// maxRendered bounds the bundles that are read and rendered for one answer: each takes some ten milliseconds, and who
// asks waits for a few seconds.
const maxRendered = 60

// suggest finds what would help a subscription now.
func (w *worker) suggest(ctx context.Context, tenant string, scope resolution.Scope, subscription string) (
	*suggestion.Answer, error,
) {
	l, err := w.store.Scopes.Load(ctx, tenant, scope)
	if err != nil {
		return nil, err
	}
	c, err := w.evaluate(ctx, l)
	if err != nil {
		return nil, err
	}
	view := w.views.View(ctx, tenant, pinned(visible(l.Catalogs), l.Subscriptions))
	k := &clusterFacts{ctx: ctx, renderer: w.renderer(l)}
	stop := func() bool { return ended(ctx)() || k.spent() }
	in := l.Input(view)
	answer := suggestion.Suggest(suggestion.Question{
		Input: in, Before: k.withFailures(in, c), Subscription: subscription, Groups: l.Groups, Cluster: k, Stop: stop,
	})
	if k.err != nil {
		return nil, k.err
	}
	for _, v := range c.verdicts {
		if answer.Resolves && slices.Contains(v.Component.Subscriptions, subscription) {
			answer.Waits = append(answer.Waits, preview.Waits(v)...)
		}
	}
	return &answer, view.Err()
}

// clusterFacts answers what is known of bundles and of the cluster. A pure search asks it, so the
// first trouble is kept in err, and everything after it is refused.
type clusterFacts struct {
	*renderer

	ctx context.Context //nolint:containedctx // of the one question that it lives for
	err error
}

// withFailures is what a resolution came to, with what was found against its components afterwards as their failures.
func (k *clusterFacts) withFailures(in resolution.Input, c evaluation) resolution.Result {
	r := c.result
	r.Components = slices.Clone(r.Components)
	for i, v := range c.verdicts {
		failed := v.Kind == decide.Failed || v.Kind == decide.Fetching &&
			v.Failure.Reason == resolution.ReasonUnpackFailed
		switch {
		case r.Components[i].Failure != nil:
		case failed:
			r.Components[i].Failure = v.Failure
		default:
			r.Components[i].Failure = k.Refused(in, k.l.Groups, r.Components[i])
		}
	}
	return r
}

func (k *clusterFacts) spent() bool { return k.err != nil || len(k.done)+len(k.csvs) > maxRendered }

// Refused implements suggestion.ClusterFacts.
func (k *clusterFacts) Refused(in resolution.Input, groups []decide.Group,
	c resolution.Component,
) *resolution.Explanation {
	refuse := func(bundle, why string) *resolution.Explanation {
		return decide.NotInstallable(decide.Verdict{Component: c}, bundle, why).Failure
	}
	var fetched resolution.Component
	for _, b := range c.Bundles {
		switch i := slices.IndexFunc(in.Installed, func(i resolution.Installed) bool {
			return i.CSV == b.CSV &&
				i.Package != "" && i.Package != b.Package
		}); {
		case i >= 0:
			return refuse(b.CSV, fmt.Sprintf("a ClusterServiceVersion %s of package %s is installed", b.CSV,
				in.Installed[i].Package))
		case b.Unfetched != "":
			return refuse(b.CSV, fmt.Sprintf("bundle image %s of %s cannot be had (%s)", b.Image, b.CSV, b.Unfetched))
		case b.Content != "" || b.Image == "": // of an image that nobody has fetched yet nothing is known
			fetched.Bundles = append(fetched.Bundles, b)
		}
	}
	_, refused, err := k.render(k.ctx, fetched, groups)
	switch {
	case err != nil:
		k.err = err
		return refuse(c.Name, err.Error())
	case refused != nil:
		return refuse(refused.bundle, refused.why)
	}
	return nil
}

// Unsupported implements suggestion.ClusterFacts.
func (k *clusterFacts) Unsupported(in resolution.Input, groups []decide.Group) []string {
	var out []string
	for _, i := range in.Installed {
		if len(groups) != 1 || i.Content == "" {
			continue
		}
		c, err := k.csv(k.ctx, string(i.Content))
		if err != nil { // not kept any more: nothing is known of it
			continue
		}
		if k.l.Fit(c, groups[0]) != nil {
			out = append(out, i.CSV)
		}
	}
	return out
}

var _ suggestion.ClusterFacts = (*clusterFacts)(nil)
