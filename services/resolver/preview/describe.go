package preview

import (
	"slices"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Describe says what decisions on a state come to. documents adds the plans with their steps.
func Describe(s decide.State, verdicts []decide.Verdict, d decide.Decisions, documents bool) (
	previewapi.ScopePreview, error,
) {
	o := previewapi.ScopePreview{
		Cluster: s.Scope.Cluster, Namespace: s.Scope.Namespace,
		Plans: []previewapi.PreviewPlan{}, Superseded: []previewapi.PreviewSuperseded{},
		Failures: []previewapi.PreviewFailure{}, Waiting: []previewapi.PreviewWaiting{},
		Settled: []previewapi.PreviewOutcome{},
	}
	for _, p := range d.Proposals {
		o.Plans = append(o.Plans, plan(p, documents))
	}
	for _, x := range d.Superseded {
		p := x.Plan.State.Proposed
		o.Superseded = append(o.Superseded, previewapi.PreviewSuperseded{
			Plan: x.Plan.ID, Name: p.Name, Component: p.Component, Digest: p.Digest,
		})
	}
	for _, v := range verdicts {
		if err := add(&o, v, d); err != nil {
			return o, err
		}
	}
	return o, nil
}

func plan(p decide.Proposal, document bool) previewapi.PreviewPlan {
	e := p.Event
	out := previewapi.PreviewPlan{
		Component: e.Component, Approval: e.Approval, Digest: e.Digest, Input: e.Input,
		Semantics: e.Semantics, Steps: e.Steps, Base: e.Base,
		Bundles: e.Bundles, Policies: e.Policies, ManualReasons: e.ManualReasons, Approvers: e.Approvers,
		Windows: e.Windows,
	}
	if document {
		out.Document = p.Document
	}
	return out
}

// add says what becomes of one component beside plans.
func add(o *previewapi.ScopePreview, v decide.Verdict, d decide.Decisions) error {
	news := eventsOf(v, d)
	switch v.Kind {
	case decide.Proposed:
		return nil
	case decide.Failed:
		f, err := failure(v, len(news) > 0)
		o.Failures = append(o.Failures, f)
		return err
	case decide.Settled:
		for _, t := range news {
			o.Settled = append(o.Settled, previewapi.PreviewOutcome{
				Subscription: t.Subscription.Name,
				CSV:          t.Outcome.CSV,
			})
		}
		if len(news) > 0 {
			return nil
		}
	case decide.Fetching, decide.Blocked, decide.Waiting, decide.Ended, decide.Held:
		if w, waits := waiting(v, len(news) > 0); waits {
			o.Waiting = append(o.Waiting, w)
			return nil
		}
	case decide.Kept:
	}
	o.Unchanged++
	return nil
}

// eventsOf are those that would be recorded of the component's subscriptions.
func eventsOf(v decide.Verdict, d decide.Decisions) []decide.SubscriptionEvent {
	var out []decide.SubscriptionEvent
	for _, t := range d.SubscriptionEvents {
		if slices.Contains(v.Component.Subscriptions, t.Subscription.Name) {
			out = append(out, t)
		}
	}
	return out
}

func failure(v decide.Verdict, news bool) (previewapi.PreviewFailure, error) {
	raw, err := digest.Canonical(v.Failure)
	return previewapi.PreviewFailure{
		Component: v.Component.Name, Subscriptions: append([]string{}, v.Failure.Subscriptions...),
		Reason: v.Failure.Reason, Class: string(v.Failure.Class), Sentences: sentences(v.Failure), Explanation: raw,
		News: news,
	}, errs.Wrap(errs.Internal, err, "encode an explanation")
}

// Waits says what a component waits for that could go on otherwise; nothing where it does not wait.
func Waits(v decide.Verdict) []string {
	w, waits := waiting(v, false)
	if !waits {
		return nil
	}
	return w.Sentences
}

// waiting says what a component waits for; waits is false where it would do nothing anyhow.
func waiting(v decide.Verdict, news bool) (w previewapi.PreviewWaiting, waits bool) {
	c := v.Component
	w = previewapi.PreviewWaiting{Component: c.Name, News: news, Sentences: []string{}}
	switch v.Kind {
	case decide.Waiting:
		w.For, w.Sentences = previewapi.WaitCatalog, append(
			w.Sentences, "a catalog that it needs is being loaded for the first time")
	case decide.Held:
		w.For, w.Sentences = previewapi.WaitUnderWay, append(w.Sentences,
			"a plan of it is being carried out, or one of its operators is not Succeeded: one step at a time")
		return w, len(c.Bundles) > 0 || c.Failure != nil
	case decide.Fetching:
		w.For = previewapi.WaitImage
		for _, b := range c.Bundles {
			if b.Content == "" && b.Image != "" {
				w.Sentences = append(w.Sentences,
					"the steps of "+b.CSV+" are not known before its image "+b.Image+
						" is fetched, which a preview does not ask for")
			}
		}
	case decide.Blocked:
		w.For, w.Sentences = previewapi.WaitStrict, sentences(v.Failure)
		if v.Failure.Class == resolution.ClassCordoned {
			w.For = previewapi.WaitCordoned
		}
	case decide.Ended:
		w.For, w.Sentences = previewapi.WaitEnded, append(w.Sentences,
			"plan "+v.Plan.State.Proposed.Name+", which does the same, ended as "+string(v.Plan.State.Phase))
	case decide.Proposed, decide.Failed, decide.Settled, decide.Kept:
		return w, false
	}
	return w, true
}

func sentences(e *resolution.Explanation) []string {
	out := []string{}
	for _, s := range e.Statements {
		out = append(out, s.Text)
	}
	return out
}

// fingerprintTypes are the type prefixes of digests of this package.
const (
	announcedType   = "chandler.preview-announced.v1"
	fingerprintType = "chandler.preview-fingerprint.v1"
	factType        = "chandler.preview-fact.v1"
)

// Announced is the digest of what a preview of a scope announces: plans, ends and failures, not whether they are news.
func Announced(o previewapi.ScopePreview) (digest.Digest, error) {
	type announced struct {
		Plans      []string                       `json:"plans"`
		Superseded []previewapi.PreviewSuperseded `json:"superseded"`
		Failures   []string                       `json:"failures"`
		Waiting    [][2]string                    `json:"waiting"`
		Generated  []string                       `json:"generated"`
	}
	var p announced
	for _, x := range o.Plans {
		p.Plans = append(p.Plans, x.Digest)
	}
	p.Superseded, p.Generated = o.Superseded, o.Generated
	for _, f := range o.Failures {
		p.Failures = append(p.Failures, string(f.Explanation))
	}
	for _, w := range o.Waiting {
		p.Waiting = append(p.Waiting, [2]string{w.Component, w.For})
	}
	return digest.JSON(announcedType, p)
}

// Facts are what a decision on the state rests on, by name, each as a short digest.
func Facts(s decide.State) (map[string]string, error) {
	out := map[string]string{}
	var failed error
	note := func(name string, v any) {
		d, err := digest.JSON(factType, v)
		if err != nil && failed == nil {
			failed = err
		}
		out[name] = d.Short()
	}
	for _, x := range s.Subscriptions {
		note("subscription "+x.Name, []any{x.Spec, x.Incarnation, x.InstalledCSV})
	}
	for _, x := range s.Groups {
		note("operator group "+x.Name, x.Spec)
	}
	for _, x := range s.Installed {
		note("operator "+x.Name, []any{x.Package, x.Version, x.Content, x.Phase, x.Replaces})
	}
	for _, x := range s.Catalogs {
		note("catalog "+x.Subject, []any{x.Priority, x.Revision, x.Failed, x.Reason, x.Strict})
	}
	last := newest(s.Plans)
	for _, x := range s.Plans {
		if x.State.Live() || !x.Settled && x.State.Phase == installplan.Complete || last[x.ID] {
			note("install plan "+x.State.Proposed.Name, []any{x.State.Phase, x.State.Begun, x.Effect})
		}
	}
	for _, x := range s.Policies {
		if x.Here(s.Scope.Cluster, s.Scope.Namespace, s.Labels) {
			note("approval policy "+x.Name, x.Spec)
		}
	}
	if s.Removed {
		note("cluster", s.Removed)
	}
	if s.Cluster.Kubernetes != "" {
		note("the cluster's version of Kubernetes", s.Cluster.Kubernetes)
	}
	for _, x := range s.Cluster.Groups {
		note("operator group "+x.String(), []any{x.Targets, x.Provided})
	}
	return out, failed
}

// newest are the plans that came last for a package, but for those that were superseded. What they came to counts when
// they have ended, too: a plan that failed or was rejected is not proposed again by itself, unless another came after
// it. plans are newest first.
func newest(plans []decide.Plan) map[string]bool {
	out, had := map[string]bool{}, map[string]bool{}
	for _, p := range plans {
		if p.State.Phase == installplan.Superseded {
			continue
		}
		for _, b := range p.State.Proposed.Bundles {
			if !had[b.Package] {
				had[b.Package], out[p.ID] = true, true
			}
		}
	}
	return out
}

// Fingerprint names everything that a preview of a scope rests on: facts, the clock of the tenant's catalogs, which
// counts bundle images, too, and the rules. Equal fingerprints have equal previews.
func Fingerprint(facts map[string]string, clock int64) (digest.Digest, error) {
	return digest.JSON(fingerprintType, struct {
		Facts     map[string]string `json:"facts"`
		Clock     int64             `json:"clock"`
		Semantics string            `json:"semantics"`
	}{facts, clock, resolution.Semantics})
}

// Differences names the facts that are not what they were, sorted.
func Differences(before, now map[string]string) []string {
	var out []string
	for name, v := range before {
		if now[name] != v {
			out = append(out, name)
		}
	}
	for name := range now {
		if _, was := before[name]; !was {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
