package compare

import (
	"bytes"
	"maps"
	"slices"

	"github.com/chandler-fleet/chandler/libs/bundle"
)

// Semantics names the rules by which differences are computed: raise it with any change of what Bundles returns. A
// stored difference of other rules stays what it is, under the name of its rules; one of today's is computed beside it.
//
//	chandler.compare.v1   definitions; rights by the CSV and by roles that the bundle brings and binds
//	chandler.compare.v2   rights by everything that grants, with who has them; demands; what cannot be judged
const Semantics = "chandler.compare.v2"

// Bounds on what one difference lists. What is left out is counted, never silent.
const (
	// MaxSchemaChanges is for one version of a CRD; the largest real upgrade has some 150.
	MaxSchemaChanges = 500
	// MaxRights is how many single rights of one bundle are compared; the largest real operator has 2,000.
	MaxRights = 50_000
)

// Difference is what changes from one bundle to another. The zero value is no difference.
type Difference struct {
	CRDs []CRD `json:"crds,omitempty"` // sorted by name
	// Gained is what the new bundle's operator may do and the old one's could not; Lost the other way round.
	Gained []Right `json:"gained,omitempty"`
	Lost   []Right `json:"lost,omitempty"`
	// Demands are what the new bundle asks of a cluster beside rights and the old one did not, what cannot be judged
	// included. More counts what is not listed.
	Demands     []Demand `json:"demands,omitempty"`
	MoreDemands int      `json:"moreDemands,omitempty"`
	// Problem says why the two could not be compared; then nothing else is known.
	Problem string `json:"problem,omitempty"`
}

// Breaking reports whether the upgrade can hurt what exists: resources that become invalid or unreachable.
func (d Difference) Breaking() bool {
	return slices.ContainsFunc(d.CRDs, func(c CRD) bool { return c.Breaking() })
}

// Empty reports whether it is known that there is no difference.
func (d Difference) Empty() bool {
	return d.Problem == "" && len(d.CRDs) == 0 && d.Growth() == 0 && len(d.Lost) == 0
}

// Growth is how much more the new bundle may do, asks for, or cannot be judged to ask for: 0 is nothing new.
func (d Difference) Growth() int { return len(d.Gained) + len(d.Demands) + d.MoreDemands }

// Unknown is how much of it cannot be judged.
func (d Difference) Unknown() (n int) {
	for _, r := range d.Gained {
		if r.Role != "" {
			n++
		}
	}
	for _, x := range d.Demands {
		if x.Danger == Unknown {
			n++
		}
	}
	return n
}

// Bundles compares two bundles of one package. Its error names the manifest that cannot be read.
func Bundles(from, to bundle.Content) (Difference, error) {
	old, err := Read(from)
	if err != nil {
		return Difference{}, err
	}
	now, err := Read(to)
	if err != nil {
		return Difference{}, err
	}
	return Parts(old, now)
}

// Part is a bundle read for comparison, so that one that has many neighbours in the graph is read once.
type Part struct {
	crds    map[string]bundle.Object
	rules   []scopedRule
	demands demands
}

// Read reads a bundle for Parts. Its error names the manifest that cannot be read.
func Read(c bundle.Content) (Part, error) {
	objects, err := c.Objects()
	if err != nil {
		return Part{}, err
	}
	var csv *bundle.CSV
	if slices.ContainsFunc(objects, func(o bundle.Object) bool { return o.Kind == bundle.KindCSV }) {
		found, err := c.CSV()
		if err != nil {
			return Part{}, err
		}
		csv = &found
	}
	p := Part{crds: map[string]bundle.Object{}}
	g, r := readers(&p.demands, csv)
	for _, o := range objects {
		switch o.Kind {
		case bundle.KindCRD:
			p.crds[o.Name], g.groups[bundle.GroupOf(o.Name)] = o, true
		case "Secret":
			r.secrets[o.Name] = true
		case bundle.KindCSV:
			g.namespaces[o.Namespace] = true
		case "ServiceAccount":
			var m fields
			if err := manifest(o, (*map[string]any)(&m)); err != nil {
				return Part{}, err
			}
			r.accounts[o.Name], r.tokenless[o.Name] = true, m.is("automountServiceAccountToken", false)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.accounts)) {
		g.accounts[name] = true
		// Also where no pod has it: else the next version could take a neighbour's for its own.
		p.demands.add(AnotherAccount, bundle.KindCSV, name)
	}
	if err := g.grants(csv, objects); err != nil {
		return Part{}, err
	}
	p.rules = g.rules
	return p, asks(r, csv, objects)
}

// readers are what reads grants and pods of a bundle, with what its CSV says of accounts.
func readers(d *demands, csv *bundle.CSV) (granter, podReader) {
	g := granter{
		demands: d, accounts: map[string]bool{defaultAccount: true}, namespaces: map[string]bool{},
		groups: map[string]bool{},
	}
	r := podReader{
		demands: d, accounts: map[string]bool{}, secrets: map[string]bool{}, tokenless: map[string]bool{},
	}
	if csv != nil {
		g.namespaces[csv.Annotations[suggestedNamespace]] = true
		s := csv.Spec.Install.Spec
		for _, a := range slices.Concat(s.Permissions, s.ClusterPermissions) {
			r.accounts[a.ServiceAccountName] = true
		}
	}
	return g, r
}

// Parts compares two bundles that were read before.
func Parts(from, to Part) (Difference, error) {
	var d Difference
	for _, name := range union(from.crds, to.crds) {
		old, had := from.crds[name]
		now, has := to.crds[name]
		if had && has && bytes.Equal(old.Raw, now.Raw) {
			continue
		}
		c, err := compareCRD(name, old.Raw, now.Raw)
		if err != nil {
			return Difference{}, err
		}
		if c != nil {
			d.CRDs = append(d.CRDs, *c)
		}
	}
	d.Gained = gained(from.rules, to.rules)
	d.Lost = gained(to.rules, from.rules)
	d.Demands, d.MoreDemands = to.demands.newly(&from.demands)
	return d, nil
}

// union returns the keys of both maps, sorted.
func union[V any](a, b map[string]V) []string {
	names := make([]string, 0, len(a)+len(b))
	for n := range a {
		names = append(names, n)
	}
	for n := range b {
		names = append(names, n)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
