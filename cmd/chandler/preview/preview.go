// Package preview says previews and shadow runs in the words of the command line: documents of files as changes to be
// previewed, answers as lines of a table and as sentences. It does no I/O.
package preview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// none stands for an empty cell, as in kubectl's tables.
const none = "<none>"

// Columns are those of Rows; the last one is for wide tables.
var Columns = []string{"Cluster", "Namespace", "Would", "Component", "Change", "Approval", "Steps", "Digest", "Input"}

// DifferenceColumns are those of Differences; the last one is for wide tables.
var DifferenceColumns = []string{"Cluster", "Namespace", "Subscription", "Before", "After", "Semantics"}

// Changes turns what apply would create or change into changes.
func Changes(documents []olm.Document, clusters []string) ([]model.PreviewChange, error) {
	var out []model.PreviewChange
	for _, d := range documents {
		if d.Policy != nil {
			out = append(out, model.PreviewChange{ApprovalPolicy: &model.PreviewPolicy{
				Name: d.Name, Metadata: d.Metadata, Spec: d.Policy,
			}})
		} else if d.Subscription == nil && d.OperatorGroup == nil && d.NamespaceLabels == nil && d.CopiedCSVs == "" &&
			d.Overrides == nil && d.Skipped == "" {
			return nil, fmt.Errorf("%s: what the kind %s leads to is known once it was read; it cannot be previewed", d.Where,
				d.Kind)
		}
	}
	var all []string
	for _, d := range documents {
		all = append(all, d.On(clusters)...)
	}
	slices.Sort(all)
	for _, cluster := range slices.Compact(all) {
		for _, d := range documents {
			switch {
			case !slices.Contains(d.On(clusters), cluster):
			case d.Subscription != nil:
				out = append(out, model.PreviewChange{Subscription: &model.PreviewSubscription{
					Cluster: cluster, Namespace: d.Namespace, Name: d.Name, Action: model.PreviewApply,
					Metadata: d.Metadata, Spec: d.Subscription,
				}})
			case d.OperatorGroup != nil:
				out = append(out, model.PreviewChange{OperatorGroup: &model.PreviewOperatorGroup{
					Cluster: cluster, Namespace: d.Namespace, Name: d.Name, Action: model.PreviewApply,
					Metadata: d.Metadata, Spec: d.OperatorGroup,
				}})
			}
		}
	}
	return out, nil
}

// Removed is a change after which something of a kind is gone.
func Removed(kind, cluster, namespace, name string) (c model.PreviewChange, err error) {
	switch kind {
	case "subscription":
		c.Subscription = &model.PreviewSubscription{
			Cluster: cluster, Namespace: namespace, Name: name,
			Action: model.PreviewDelete,
		}
	case "operatorgroup":
		c.OperatorGroup = &model.PreviewOperatorGroup{
			Cluster: cluster, Namespace: namespace, Name: name,
			Action: model.PreviewDelete,
		}
	case "catalog":
		c.Catalog = &model.PreviewCatalog{Cluster: cluster, Namespace: namespace, Name: name, Remove: true}
	case "approvalpolicy":
		c.ApprovalPolicy = &model.PreviewPolicy{Name: name, Remove: true}
	case "operator":
		c.Operator = &model.PreviewOperator{Cluster: cluster, Namespace: namespace, Name: name}
	default:
		return c, fmt.Errorf("what a removal leads to cannot be previewed for the kind %s", kind)
	}
	return c, nil
}

// Rows are the lines of a table for one namespace, with a cell for each of Columns, and sentences.
func Rows(s model.PreviewScope) (rows [][]any, lines []string) {
	at := s.Cluster + "/" + s.Namespace
	row := func(would, component, change, approval string, steps any, digest, input string) {
		rows = append(rows, []any{s.Cluster, s.Namespace, would, component, change, approval, steps, digest, input})
	}
	for _, p := range s.Plans {
		row("Plan", p.Component, movesOf(p.Bundles), p.Approval, p.Steps, Short(p.Digest), Short(p.Input))
		if len(p.ManualReasons) > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s waits for a person, as %s want: %s",
				at, p.Component, strings.Join(p.Policies, ", "), strings.Join(p.ManualReasons, ", ")))
		}
	}
	for _, e := range s.Superseded {
		row("Supersede", e.Component, e.Name, none, none, Short(e.Digest), none)
	}
	for _, f := range s.Failures {
		would := "Fail"
		if !f.News {
			would = "Still fail"
		}
		row(would, f.Component, f.Reason, none, none, none, none)
		for _, line := range f.Sentences {
			lines = append(lines, fmt.Sprintf("%s: %s: %s", at, f.Component, line))
		}
	}
	for _, w := range s.Waiting {
		row("Wait", w.Component, w.For, none, none, none, none)
		for _, line := range w.Sentences {
			lines = append(lines, fmt.Sprintf("%s: %s: %s", at, w.Component, line))
		}
	}
	for _, x := range s.Settled {
		row("Settle", x.Subscription, cmp.Or(x.CSV, none), none, none, none, none)
	}
	return rows, lines
}

// movesOf are the bundles of a plan as from → to.
func movesOf(bundles []model.PlannedBundle) string {
	moves := make([]string, len(bundles))
	for i, b := range bundles {
		moves[i] = "→ " + b.CSV
		if b.Replaces != "" {
			moves[i] = b.Replaces + " → " + b.CSV
		}
	}
	return strings.Join(moves, ", ")
}

// Short is enough of a digest for people.
func Short(digest string) string {
	const digits = 12
	hex := strings.TrimPrefix(digest, "sha256:")
	return cmp.Or(hex[:min(digits, len(hex))], none)
}

// Differences are the lines of a table of a shadow run, and sentences: why each comes out differently, and the counts.
func Differences(s model.Shadow) (rows [][]any, lines []string) {
	for _, d := range s.Differences {
		rows = append(rows, []any{
			d.Cluster, d.Namespace, d.Subscription, outcome(d.Before), outcome(d.After),
			d.Semantics,
		})
		for _, why := range d.Why {
			lines = append(lines, fmt.Sprintf("%s/%s/%s: %s", d.Cluster, d.Namespace, d.Subscription, why))
		}
		if d.Later {
			lines = append(lines, fmt.Sprintf("%s/%s/%s: this also rests on what catalogs offer now",
				d.Cluster, d.Namespace, d.Subscription))
		}
	}
	lines = append(lines, fmt.Sprintf("%d come out the same, %d differently.", s.Same, len(s.Differences)))
	if s.Missing > 0 {
		lines = append(lines, fmt.Sprintf("%d were not made again: what they rest on is not kept any more.", s.Missing))
	}
	return rows, lines
}

func outcome(o previewapi.ShadowOutcome) string {
	var parts []string
	for _, p := range []string{o.Kind, o.CSV, o.Reason, o.Approval} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, " ")
}
