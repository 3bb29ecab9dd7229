package explain

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestExplained is what a person reads of a decision: who asks, who forbids, what would help, and whether the record
// holds (P1).
func TestExplained(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		d    model.Decision
		want string
	}{
		"a conflict": {
			model.Decision{
				Cluster: "east-1", Namespace: "ports", Subscription: "buoy", Outcome: "Failed",
				Reason: "ConstraintsNotSatisfiable", Class: "unsatisfiable", Input: "sha256:0123456789abcdef",
				Semantics: "chandler.resolve.v3", Agrees: true,
				Conflict: []string{"subscription/buoy", "subscription/rival"}, Statements: []model.Statement{
					{Text: "there can be only one provider of Gauge (sea.test/v1): fleet/stable/rival.v1.0.0 and " +
						"fleet/stable/buoy.v2.0.0"},
					{Text: "subscription rival requires fleet/stable/rival.v1.0.0"},
				},
				More: 2, Remedies: []model.Remedy{
					{Text: "delete subscription rival", Also: []string{"subscription buoy then gets buoy.v2.0.0"}},
				},
			},
			`Subscription buoy in ports on east-1 does not resolve: ConstraintsNotSatisfiable
(unsatisfiable).

Why:
  - there can be only one provider of Gauge (sea.test/v1): fleet/stable/rival.v1.0.0 and
    fleet/stable/buoy.v2.0.0
  - subscription rival requires fleet/stable/rival.v1.0.0
  - and 2 more reasons
  These conflict; without any one of them the others can be resolved: subscription/buoy,
  subscription/rival.

Suggestions, nearest first (each was verified by resolving the namespace with it):
  1. delete subscription rival
     subscription buoy then gets buoy.v2.0.0

Recomputed from its recorded input (0123456789ab, chandler.resolve.v3), the decision is the same.`,
		},
		"nothing helps, and the record was changed": {
			model.Decision{
				Cluster: "east-1", Namespace: "ports", Subscription: "buoy", Outcome: "Failed",
				Reason: "ErrorPreventedResolution", Class: "invalid-channel", Input: "sha256:0123456789abcdef",
				Semantics: "chandler.resolve.v3", Statements: []model.Statement{
					{Text: "catalog fleet: no channel head"},
				},
				Differences: []model.DecisionDifference{{What: "explanation", Recorded: "sha256:a"}},
			},
			`Subscription buoy in ports on east-1 does not resolve: ErrorPreventedResolution
(invalid-channel).

Why:
  - catalog fleet: no channel head

No single change was found that helps.

Recomputed from its recorded input (0123456789ab, chandler.resolve.v3), the decision is NOT the same:
  - explanation: recorded sha256:a, now <none>`,
		},
		"an image that cannot be fetched": {
			model.Decision{
				Cluster: "e", Namespace: "n", Subscription: "s", Outcome: "Failed", Reason: "BundleUnpackFailed",
				Class: "bundle-image", Resolves: true, Input: "sha256:ab", Semantics: "x", Agrees: true,
				Statements: []model.Statement{{Text: "bundle image a cannot be had (NotFound)"}},
			},
			`Subscription s in n on e does not resolve: BundleUnpackFailed (bundle-image).

Why:
  - bundle image a cannot be had (NotFound)

The subscription resolves now: the reasons above no longer apply.

Recomputed from its recorded input (ab, x), the decision is the same.`,
		},
		"a plan": {
			model.Decision{
				Cluster: "east-1", Namespace: "ports", Outcome: "Planned", PlanName: "install-7x2kq",
				Input: "sha256:0123456789abcdef", Semantics: "chandler.resolve.v3", Agrees: true,
				Bundles: []model.PlannedBundle{{
					CSV: "buoy.v1.1.0", Channel: "stable", Reason: "NextStep",
					Replaces: "buoy.v1.0.0",
				}}, Why: []model.OperatorReasoning{{
					Package: "buoy", CSV: "buoy.v1.1.0", Subscription: "buoy", Channel: "stable", Catalog: "fleet",
					NotTaken: []model.NewerThan{{
						CSV: "buoy.v1.2.0", Catalog: "fleet", Channels: []string{"stable"},
						Reasons: []model.WhyReason{{Text: "one step at a time: buoy.v1.1.0 comes first"}},
					}},
				}},
			},
			`Install plan install-7x2kq for ports on east-1 brings:
  - buoy.v1.1.0, follows buoy.v1.0.0

buoy.v1.1.0 planned for ports on east-1, subscription buoy, channel stable of catalog fleet.

Newer versions, and why they are not installed:
  buoy.v1.2.0 in catalog fleet, channel stable
    - one step at a time: buoy.v1.1.0 comes first

Recomputed from its recorded input (0123456789ab, chandler.resolve.v3), the decision is the same.`,
		},
		"at the head": {
			model.Decision{
				Cluster: "e", Namespace: "n", Subscription: "s", Outcome: "AtLatestKnown", CSV: "a.v1",
				Input: "sha256:ab", Semantics: "x", Agrees: true,
			},
			"Subscription s in n on e has a.v1; no newer version is offered.\n\nRecomputed from its recorded input " +
				"(ab, x), the decision is the same.",
		},
	} {
		var p printer.Text
		writeDecision(&p, c.d)
		if diff := cmp.Diff(c.want, p.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// pinned are versions that a policy keeps away, and one that is deprecated.
func pinned(csvs ...string) (out []model.NewerThan) {
	for _, csv := range csvs {
		out = append(out, model.NewerThan{
			CSV: csv, Catalog: "fleet", Channels: []string{"x"},
			Reasons: []model.WhyReason{{Text: "approval policy freeze pins 1.0.0"}},
		})
	}
	return append(out, model.NewerThan{
		CSV: "a.v4", Catalog: "fleet", Channels: []string{"x"},
		Reasons: []model.WhyReason{{Text: "it is deprecated"}},
	})
}

// TestWhyText: an operator that nobody follows, one without news, and more than is shown.
func TestWhyText(t *testing.T) {
	t.Parallel()
	for want, w := range map[string]model.OperatorReasoning{
		"a.v1 (Succeeded) here, which no subscription follows.\n\nNo visible catalog has a newer version.": {Package: "a", CSV: "a.v1", Phase: "Succeeded"},
		`a.v1 (Succeeded) here, which no subscription follows.

Newer versions, and why they are not installed:
  a.v9, a.v8, a.v7 … a.v5 (5 versions) in catalog fleet, channel x
    - approval policy freeze pins 1.0.0
  a.v4 in catalog fleet, channel x
    - it is deprecated`: {Package: "a", CSV: "a.v1", Phase: "Succeeded", NotTaken: pinned("a.v9", "a.v8", "a.v7", "a.v6", "a.v5")},
		`Nothing of package a is installed or planned here, subscription s, channel (any) of catalog
(any).

Why it is there:
  - subscription s asks for package a

Newer versions, and why they are not installed:
  a.v2 in catalog fleet, channel x, y
    - approval policy freeze pins 1.0.0
  and 7 older ones of these`: {
			Package: "a", Subscription: "s", Because: []model.WhyLink{{Text: "subscription s asks for package a"}},
			More: 7, NotTaken: []model.NewerThan{{
				CSV: "a.v2", Catalog: "fleet", Channels: []string{"x", "y"},
				Reasons: []model.WhyReason{{Text: "approval policy freeze pins 1.0.0"}},
			}},
		},
	} {
		var p printer.Text
		writeWhy(&p, w, "here")
		if diff := cmp.Diff(want, p.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
