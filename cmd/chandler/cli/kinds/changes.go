package kinds

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/libs/catalog/compare"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// describeChanges says what the replacements of a plan change, for who approves it.
func describeChanges(p *printer.Page, all []model.Upgrade) {
	if len(all) == 0 {
		return
	}
	p.Section("Changes")
	for _, u := range all {
		p.Row("UPGRADE", u.From+" -> "+u.To, changeSummary(u))
		for _, line := range printer.Limit(crdLines(u.CRDs)) {
			p.Row("", "", line)
		}
		for _, line := range printer.Limit(rightLines(u.Gained)) {
			p.Row("", "", "new permission: "+line)
		}
		for _, line := range printer.Limit(demandLines(u.Demands, u.MoreDemands)) {
			p.Row("", "", line)
		}
	}
}

func changeSummary(u model.Upgrade) string {
	switch {
	case u.State == model.UpgradePending:
		return "not compared yet; try again in a moment"
	case u.State == model.UpgradeUnknown:
		return "unknown: the manifests of one version are not available"
	case u.Problem != "":
		return "cannot be compared: " + u.Problem
	case u.Empty() && u.Semantics == compare.Semantics:
		return "the same custom resource definitions and permissions, and nothing new is asked of the cluster"
	}
	out := fmt.Sprintf("changed custom resource definitions: %d, permissions gained: %d, lost: %d", len(u.CRDs),
		len(u.Gained), len(u.Lost))
	if u.Semantics == compare.Semantics {
		out += fmt.Sprintf(", new demands: %d, of all that unknown: %d", len(u.Demands)+u.MoreDemands, u.Unknown())
	} else { // what it does not count is not nothing
		out += fmt.Sprintf("; demands: unknown, since it was compared by older rules (%s)",
			printer.Or(u.Semantics, "no name"))
	}
	if u.Breaking {
		out = "BREAKING: existing resources can become invalid or unreachable; " + out
	}
	return out
}

func crdLines(crds []compare.CRD) []string {
	var out []string
	for i := range crds {
		c := &crds[i]
		if c.Change != compare.Changed {
			out = append(out, c.Name+" is "+c.Change)
			continue
		}
		add := func(format string, args ...any) { out = append(out, c.Name+": "+fmt.Sprintf(format, args...)) }
		if c.Scope != nil {
			add("scope %s becomes %s", c.Scope.From, c.Scope.To)
		}
		if c.Storage != nil {
			add("stored version %s becomes %s", c.Storage.From, c.Storage.To)
		}
		if len(c.ServedRemoved) > 0 {
			add("no longer serves %s", strings.Join(c.ServedRemoved, ", "))
		}
		if len(c.VersionsAdded) > 0 {
			add("new versions %s", strings.Join(c.VersionsAdded, ", "))
		}
		for _, s := range c.Schema {
			add("%s %s %s", s.Version, printer.Or(s.Path, "(whole)"), narrowing(s))
		}
		if c.More > 0 {
			add("and %d more", c.More)
		}
	}
	return out
}

func narrowing(s compare.SchemaChange) string {
	switch {
	case s.From != "" && s.To != "":
		return fmt.Sprintf("%s: %s becomes %s", s.Kind, s.From, s.To)
	case s.From != "":
		return fmt.Sprintf("%s: %s", s.Kind, s.From)
	case s.To != "":
		return fmt.Sprintf("%s: %s", s.Kind, s.To)
	default:
		return string(s.Kind)
	}
}

// demandLines say what a bundle newly asks of a cluster beside rights, what hurts most first: a list is cut, and must
// not be a place to hide.
func demandLines(demands []compare.Demand, more int) []string {
	out := make([]string, 0, len(demands)+1)
	demands = slices.Clone(demands)
	slices.SortStableFunc(demands, func(a, b compare.Demand) int { return compare.First(!a.Mild(), !b.Mild()) })
	for _, d := range demands {
		line := "new demand: "
		if d.Danger == compare.Unknown {
			line = "unknown: "
		}
		line += d.Object
		if d.Detail != "" {
			line += ": " + d.Detail
		}
		if d.Danger != compare.Unknown {
			line += " (" + d.Danger + ")"
		}
		out = append(out, line)
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("and %d more demands", more))
	}
	return out
}

// rightLines say what is newly allowed, what deserves a second look first.
func rightLines(rights []compare.Right) []string {
	out := make([]string, 0, len(rights))
	rights = slices.Clone(rights)
	slices.SortStableFunc(rights,
		func(a, b compare.Right) int { return compare.First(a.Sensitive != "", b.Sensitive != "") })
	for _, r := range rights {
		what := r.URL
		if what == "" {
			what = strings.TrimSuffix(r.Resource+"."+r.Group, ".")
		}
		if r.Name != "" {
			what += " " + r.Name
		}
		where := "in its namespaces"
		if r.Scope == compare.ScopeCluster {
			where = "in the whole cluster"
		}
		line := strings.Join(r.Verbs, ", ") + " " + what + " " + where
		if r.Role != "" {
			line = "unknown, so everything: whatever " + r.Role + " allows " + where
		}
		if r.Holder != "" {
			line += " for " + r.Holder
		}
		if r.Sensitive != "" {
			line += " (" + r.Sensitive + ")"
		}
		out = append(out, line)
	}
	return out
}
