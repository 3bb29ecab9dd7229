package resolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/services/resolver/offer"
)

// finding is how far the look-up of a subscription came, to tell what is missing and what exists instead.
// The first question without answer decides what is told (RESOLVER-NOTES 2.1).
type finding struct {
	sub      *Subscription
	catalogs []int32          // asked
	packages []*offer.Package // of that name, in these
	channel  bool             // one that is meant has a bundle
	entries  bool             // one of them may be considered
	back     bool             // what is looked for is where a rollback leads
}

// complete says whether every question has an answer.
func (f finding) complete() bool { return len(f.packages) > 0 && f.channel && f.entries }

func (f finding) statements(w *world) []Statement {
	s := Statement{Subscription: f.sub.Name, Package: f.sub.Package, Channel: f.sub.Channel, Catalog: f.sub.Catalog, Revision: f.revision()}
	switch {
	case len(f.packages) == 0 && f.empty(w):
		s.Kind = CatalogMissing
		s.Text = fmt.Sprintf("no operators found from catalog %s referenced by subscription %s: it is empty", f.catalog(), f.sub.Name)
	case len(f.packages) == 0:
		s.Kind = PackageNotFound
		s.Channel = ""
		s.Choices = f.near(w)
		s.Text = fmt.Sprintf("no operators found in package %s in catalog %s referenced by subscription %s%s",
			f.sub.Package, f.catalog(), f.sub.Name, instead("similar packages there are", s.Choices))
	case !f.channel:
		s.Kind = ChannelNotFound
		s.Choices = first(f.channels(), maxChoices)
		s.Text = fmt.Sprintf("no operators found in channel %s of package %s in catalog %s referenced by subscription %s%s",
			cmp.Or(f.sub.Channel, "(any)"), f.sub.Package, f.catalog(), f.sub.Name, instead("its channels are", s.Choices))
	case !f.entries && f.back:
		s.Kind = RollbackNotFound
		s.Channel, s.Bundle = "", f.sub.Rollback.To
		s.Text = fmt.Sprintf("subscription %s is to go back to %s, which package %s in catalog %s does not hold any more",
			f.sub.Name, f.sub.Rollback.To, f.sub.Package, f.catalog())
	case !f.entries:
		s.Kind = StartingCSVNotFound
		s.Bundle = f.sub.StartingCSV
		s.Choices = f.bundles()
		s.Text = fmt.Sprintf("no operators found with name %s in channel %s of package %s in catalog %s referenced by subscription %s%s",
			f.sub.StartingCSV, cmp.Or(f.sub.Channel, "(any)"), f.sub.Package, f.catalog(), f.sub.Name, instead("similar ones are", s.Choices))
	default:
		s.Kind = NoCandidates
		s.Text = fmt.Sprintf("no operators found matching the criteria of subscription %s: every entry of channel %s of package %s in catalog %s is skipped by another one",
			f.sub.Name, cmp.Or(f.sub.Channel, "(any)"), f.sub.Package, f.catalog())
	}
	return []Statement{s}
}

// revision is the digest of the package document that was looked into.
func (f finding) revision() string {
	if len(f.packages) == 0 {
		return ""
	}
	return string(f.packages[0].Digest)
}

func (f finding) empty(w *world) bool {
	return !slices.ContainsFunc(f.catalogs, func(c int32) bool { return len(w.ask.names(w.catalogs[c].Key)) > 0 })
}

func (f finding) channels() []string {
	var out []string
	for _, p := range f.packages {
		for i := range p.Channels {
			out = append(out, p.Channels[i].Name)
		}
	}
	return sortedSet(out)
}

// bundles are the names most similar to the starting CSV's.
func (f finding) bundles() []string {
	var all []string
	for _, p := range f.packages {
		for i := range p.Channels {
			if f.sub.Channel != "" && p.Channels[i].Name != f.sub.Channel {
				continue
			}
			for name := range p.Channels[i].All {
				all = append(all, name)
			}
		}
	}
	return similar(sortedSet(all), f.sub.StartingCSV)
}

func (f finding) catalog() string { return cmp.Or(f.sub.Catalog, "(any)") }

// near are the packages with the most similar names in the catalogs that were asked.
func (f finding) near(w *world) []string {
	var all []string
	for _, c := range f.catalogs {
		all = append(all, w.ask.names(w.catalogs[c].Key)...)
	}
	return similar(sortedSet(all), f.sub.Package)
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

func tooHard(limit int, knot, beside []*root) Statement {
	names := func(roots []*root) (out []string) {
		for _, r := range roots {
			out = append(out, r.text())
		}
		return out
	}
	s := Statement{Kind: SearchTooLong, Choices: first(names(knot), maxChoices)}
	s.Text = fmt.Sprintf("no answer was found within the budget of %d conflicts for %s", limit, listed(names(knot), "and"))
	if len(beside) > 0 {
		s.Text += " beside " + listed(names(beside), "and")
	}
	s.Text += "; fewer subscriptions in one namespace, or narrower ones, make the question smaller"
	return s
}

// listed joins names, counting those beyond some: "a, b and c", "a, b, … and 3 more"; word goes before the last.
func listed(names []string, word string) string {
	shown := first(names, maxChoices)
	if more := len(names) - len(shown); more > 0 {
		return fmt.Sprintf("%s %s %d more", strings.Join(shown, ", "), word, more)
	}
	if len(shown) < 2 {
		return strings.Join(shown, "")
	}
	return strings.Join(shown[:len(shown)-1], ", ") + " " + word + " " + shown[len(shown)-1]
}
