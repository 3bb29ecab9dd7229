package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/services/resolver/offer"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// lookup is how far the look-up of a subscription came, to explain what is missing and what exists instead.
// The first question without answer decides what is explained (RESOLVER-NOTES 2.1).
type lookup struct {
	sub      *resolution.Subscription
	catalogs []int32          // asked
	packages []*offer.Package // of that name, in these
	channel  bool             // one that is meant has a bundle
	entries  bool             // one of them may be considered
	back     bool             // what is searched for is where a rollback leads
}

// complete says whether every question has an answer.
func (l lookup) complete() bool { return len(l.packages) > 0 && l.channel && l.entries }

func (l lookup) statements(g *Graph) []resolution.Statement {
	s := resolution.Statement{
		Subscription: l.sub.Name, Package: l.sub.Package, Channel: l.sub.Channel, Catalog: l.sub.Catalog,
		Revision: l.revision(),
	}
	switch {
	case len(l.packages) == 0 && l.empty(g):
		s.Kind = resolution.CatalogMissing
		s.Text = fmt.Sprintf("no operators found from catalog %s referenced by subscription %s: it is empty",
			l.catalog(), l.sub.Name)
	case len(l.packages) == 0:
		s.Kind = resolution.PackageNotFound
		s.Channel = ""
		s.Choices = l.near(g)
		s.Text = fmt.Sprintf("no operators found in package %s in catalog %s referenced by subscription %s%s",
			l.sub.Package, l.catalog(), l.sub.Name, instead("similar packages there are", s.Choices))
	case !l.channel:
		s.Kind = resolution.ChannelNotFound
		s.Choices = FirstChoices(l.channels())
		s.Text = fmt.Sprintf(
			"no operators found in channel %s of package %s in catalog %s referenced by subscription %s%s",
			cmp.Or(l.sub.Channel, "(any)"), l.sub.Package, l.catalog(), l.sub.Name,
			instead("its channels are", s.Choices))
	case !l.entries && l.back:
		s.Kind = resolution.RollbackNotFound
		s.Channel, s.Bundle = "", l.sub.Rollback.To
		s.Text = fmt.Sprintf(
			"subscription %s is to go back to %s, which package %s in catalog %s does not hold any more",
			l.sub.Name, l.sub.Rollback.To, l.sub.Package, l.catalog())
	case !l.entries:
		s.Kind = resolution.StartingCSVNotFound
		s.Bundle = l.sub.StartingCSV
		s.Choices = l.bundles()
		s.Text = fmt.Sprintf(
			"no operators found with name %s in channel %s of package %s in catalog %s referenced by subscription %s%s",
			l.sub.StartingCSV, cmp.Or(l.sub.Channel, "(any)"), l.sub.Package, l.catalog(), l.sub.Name,
			instead("similar ones are", s.Choices))
	default:
		s.Kind = resolution.NoCandidates
		s.Text = fmt.Sprintf("no operators found matching the criteria of subscription %s: "+
			"every entry of channel %s of package %s in catalog %s is skipped by another one",
			l.sub.Name, cmp.Or(l.sub.Channel, "(any)"), l.sub.Package, l.catalog())
	}
	return []resolution.Statement{s}
}

// revision is the digest of the package document that was read.
func (l lookup) revision() string {
	if len(l.packages) == 0 {
		return ""
	}
	return string(l.packages[0].Digest)
}

func (l lookup) empty(g *Graph) bool {
	return !slices.ContainsFunc(l.catalogs, func(c int32) bool { return len(g.Reader.Names(g.Catalogs[c].Key)) > 0 })
}

func (l lookup) channels() []string {
	var out []string
	for _, p := range l.packages {
		for i := range p.Channels {
			out = append(out, p.Channels[i].Name)
		}
	}
	return sortedSet(out)
}

// bundles are the names most similar to the starting CSV's.
func (l lookup) bundles() []string {
	var all []string
	for _, p := range l.packages {
		for i := range p.Channels {
			if l.sub.Channel != "" && p.Channels[i].Name != l.sub.Channel {
				continue
			}
			for name := range p.Channels[i].All {
				all = append(all, name)
			}
		}
	}
	return similar(sortedSet(all), l.sub.StartingCSV)
}

func (l lookup) catalog() string { return cmp.Or(l.sub.Catalog, "(any)") }

// near are the packages with the most similar names in the catalogs that were asked.
func (l lookup) near(g *Graph) []string {
	var all []string
	for _, c := range l.catalogs {
		all = append(all, g.Reader.Names(g.Catalogs[c].Key)...)
	}
	return similar(sortedSet(all), l.sub.Package)
}

// similar are the names nearest to one, nearest first.
func similar(all []string, to string) []string {
	distance := map[string]int{}
	for _, n := range all {
		distance[n] = editDistance(n, to)
	}
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(distance[a], distance[b]) })
	limit := max(len(to)/2, 2) // farther ones are other words
	all = slices.DeleteFunc(all, func(n string) bool { return distance[n] > limit })
	return FirstChoices(all)
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

func catalogMissing(s *resolution.Subscription, visible []resolution.Catalog) resolution.Statement {
	var names []string
	for _, c := range visible {
		names = append(names, c.Key.String())
	}
	slices.Sort(names)
	key := resolution.CatalogKey{Name: s.Catalog, Namespace: s.CatalogNamespace}
	return resolution.Statement{
		Kind: resolution.CatalogMissing, Subscription: s.Name, Catalog: key.String(), Choices: FirstChoices(names),
		Text: fmt.Sprintf(
			"no operators found from catalog %s referenced by subscription %s: no such catalog is visible here%s",
			key, s.Name, instead("visible catalogs are", FirstChoices(names))),
	}
}

func catalogNotReady(s *resolution.Subscription, c resolution.Catalog) resolution.Statement {
	return resolution.Statement{
		Kind: resolution.CatalogNotReady, Subscription: s.Name, Catalog: c.Key.String(),
		Text: fmt.Sprintf("catalog %s referenced by subscription %s has no revision in service yet", c.Key, s.Name),
	}
}

// maxChoices bounds the alternatives that a statement names: a person reads some, not hundreds.
const maxChoices = 8

// FirstChoices are as many of a list as a statement names.
func FirstChoices[T any](list []T) []T { return list[:min(maxChoices, len(list))] }
