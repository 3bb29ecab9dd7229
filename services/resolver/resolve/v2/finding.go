package v2

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// finding is how far the look-up of a subscription came, to tell what is missing and what exists instead.
// The first question without answer decides what is told (RESOLVER-NOTES 2.1).
type finding struct {
	sub      *Subscription
	absent   []Catalog // that have no such package
	pkg      bool
	channel  bool
	entries  bool
	channels []string // of the package
}

func (f finding) statements(w *world) []Statement {
	s := Statement{Subscription: f.sub.Name, Package: f.sub.Package, Channel: f.sub.Channel, Catalog: f.sub.Catalog}
	switch {
	case !f.pkg:
		s.Kind = PackageNotFound
		s.Channel = ""
		s.Choices = f.near(w)
		s.Text = fmt.Sprintf("no operators found in package %s in catalog %s referenced by subscription %s%s",
			f.sub.Package, f.catalog(), f.sub.Name, instead("similar packages there are", s.Choices))
	case !f.channel:
		s.Kind = ChannelNotFound
		s.Choices = first(sortedSet(f.channels), maxChoices)
		s.Text = fmt.Sprintf("no operators found in channel %s of package %s in catalog %s referenced by subscription %s%s",
			f.sub.Channel, f.sub.Package, f.catalog(), f.sub.Name, instead("its channels are", s.Choices))
	case f.sub.StartingCSV != "" && !f.entries:
		s.Kind = StartingCSVNotFound
		s.Bundle = f.sub.StartingCSV
		s.Text = fmt.Sprintf("no operators found with name %s in channel %s of package %s in catalog %s referenced by subscription %s",
			f.sub.StartingCSV, cmp.Or(f.sub.Channel, "(any)"), f.sub.Package, f.catalog(), f.sub.Name)
	default:
		s.Kind = NoCandidates
		s.Text = fmt.Sprintf("no operators found matching the criteria of subscription %s", f.sub.Name)
	}
	return []Statement{s}
}

func (f finding) catalog() string { return cmp.Or(f.sub.Catalog, "(any)") }

// near are the packages with the most similar names in the catalog that the subscription names.
func (f finding) near(w *world) []string {
	var all []string
	for _, c := range f.absent {
		all = append(all, w.ask.names(c.Key)...)
	}
	all = sortedSet(all)
	distance := map[string]int{}
	for _, n := range all {
		distance[n] = editDistance(n, f.sub.Package)
	}
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(distance[a], distance[b]) })
	limit := max(len(f.sub.Package)/2, 2) // farther ones are other words
	all = slices.DeleteFunc(all, func(n string) bool { return distance[n] > limit })
	return first(all, maxChoices)
}

func instead(words string, choices []string) string {
	if len(choices) == 0 {
		return ""
	}
	return "; " + words + " " + strings.Join(choices, ", ")
}

func sortedSet(list []string) []string {
	out := slices.Clone(list)
	slices.Sort(out)
	return slices.Compact(out)
}

// editDistance is Levenshtein's over bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

func catalogMissing(s *Subscription, visible []Catalog) Statement {
	var names []string
	for _, c := range visible {
		names = append(names, c.Key.String())
	}
	slices.Sort(names)
	key := CatalogKey{Name: s.Catalog, Namespace: s.CatalogNamespace}
	return Statement{
		Kind: CatalogMissing, Subscription: s.Name, Catalog: key.String(), Choices: first(names, maxChoices),
		Text: fmt.Sprintf("no operators found from catalog %s referenced by subscription %s: no such catalog is visible here%s",
			key, s.Name, instead("visible catalogs are", first(names, maxChoices))),
	}
}

func catalogNotReady(s *Subscription, c Catalog) Statement {
	return Statement{
		Kind: CatalogNotReady, Subscription: s.Name, Catalog: c.Key.String(),
		Text: fmt.Sprintf("catalog %s referenced by subscription %s has no revision in service yet", c.Key, s.Name),
	}
}

func catalogUnhealthy(c Catalog, reason string) Statement {
	return Statement{
		Kind: CatalogUnhealthy, Catalog: c.Key.String(),
		Text: fmt.Sprintf("catalog %s is unhealthy (%s), and nothing new is planned while one is that this namespace sees: repair, disable or remove it",
			c.Key, cmp.Or(reason, "it could not be loaded")),
	}
}

func malformedChannel(c Catalog, pkg string, ch *channel) Statement {
	return Statement{
		Kind: ChannelMalformed, Catalog: c.Key.String(), Package: pkg, Channel: ch.name,
		Text: fmt.Sprintf("catalog %s: %v", c.Key, ch.err),
	}
}

func tooComplex(limit int) Statement {
	return Statement{Kind: SearchTooLong, Text: fmt.Sprintf("no answer was found within %d candidates tried; fewer subscriptions in one namespace, or narrower ones, make the question smaller", limit)}
}
