package crd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chandler-fleet/chandler/libs/catalog/compare"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

const (
	// maxSample is how many objects a verdict names.
	maxSample = 10
	// maxFields is how many fields of a definition a verdict names.
	maxFields = 10
)

// Input is what a verdict is made of.
type Input struct {
	// Live is the definition as the cluster has it, as JSON; nil where it has none.
	Live json.RawMessage
	// Next is the definition as the plan wants it, as JSON.
	Next json.RawMessage
	// Owners are the operators that own the definition now, as namespace/csv.
	Owners []string
	// Leaving are those of them that the plan replaces, or installs itself.
	Leaving []string
	// Budget is what the check may still cost; nil is a whole one.
	Budget *Budget
}

// Judge makes one verdict: New, then Add for each object of each version of Versions, then Verdict.
type Judge struct {
	out        protocol.CRDVerdict
	live, next apiextensionsv1.CustomResourceDefinition
	created    bool
	diff       *compare.CRD // nil where nothing becomes narrower, goes or moves
	back       *compare.CRD // what going back would change
	others     []string     // owners beside those of the plan
	was, is    map[string]*checker
	dropped    map[string]int // fields that objects hold and the new schema does not know
	unread     []string       // versions whose objects nobody can list
	fixed      bool           // a problem is one that nobody may override
	budget     *Budget
}

// New reads both definitions. Its error is errs.Invalid and names the one that cannot be read.
func New(in Input) (*Judge, error) {
	j := &Judge{was: map[string]*checker{}, is: map[string]*checker{}, dropped: map[string]int{}, budget: in.Budget}
	if j.budget == nil {
		j.budget = NewBudget()
	}
	if err := parse(in.Next, &j.next); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "the definition of the plan")
	}
	j.out = protocol.CRDVerdict{CRD: j.next.Name, Owners: slices.Sorted(slices.Values(in.Owners))}
	if in.Live == nil {
		j.created = true
		return j, nil
	}
	for _, o := range j.out.Owners {
		if !slices.Contains(in.Leaving, o) {
			j.others = append(j.others, o)
		}
	}
	if err := parse(in.Live, &j.live); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "the definition of the cluster")
	}
	if err := j.compare(in); err != nil {
		return nil, err
	}
	err := j.prepare()
	return j, err
}

func parse(raw json.RawMessage, into *apiextensionsv1.CustomResourceDefinition) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return errs.New(errs.Invalid, "CustomResourceDefinition cannot be read: %v", err).At("/spec", "R-CRD-6")
	}
	return nil
}

// compare takes both directions of the difference. What a cluster answers is spelled in another way than what a bundle
// holds, so both are brought to one spelling first.
func (j *Judge) compare(in Input) error {
	live, err := digest.Canonical(in.Live)
	if err != nil {
		return err
	}
	next, err := digest.Canonical(in.Next)
	if err != nil {
		return err
	}
	if j.diff, err = compare.Definitions(j.next.Name, live, next); err != nil {
		return err
	}
	j.back, err = compare.Definitions(j.next.Name, next, live)
	return err
}

// prepare makes the checkers of the versions whose objects can have become invalid: those with a narrower schema, and
// new ones that existing objects are served in without being converted.
func (j *Judge) prepare() error {
	if j.diff == nil || j.diff.Scope != nil {
		return nil
	}
	for _, v := range j.next.Spec.Versions {
		if !v.Served || !j.narrower(v.Name) && !j.appears(v.Name) {
			continue
		}
		from := v.Name
		if j.appears(v.Name) {
			from = j.readable()
		} else if !served(j.live, v.Name) {
			from = ""
		}
		if from == "" {
			j.unread = append(j.unread, v.Name)
			continue
		}
		var err error
		if j.is[v.Name], err = newChecker(j.next, v.Name); err != nil {
			return err
		}
		if j.was[from] == nil {
			if j.was[from], err = newChecker(j.live, from); err != nil {
				return err
			}
		}
		j.was[from].checks = append(j.was[from].checks, v.Name)
	}
	return nil
}

// narrower reports whether the schema of a version takes less than before.
func (j *Judge) narrower(version string) bool {
	return j.diff.More > 0 || slices.ContainsFunc(j.diff.Schema,
		func(c compare.SchemaChange) bool { return c.Version == version })
}

// appears reports a new version that gets objects of other versions as they are.
func (j *Judge) appears(version string) bool {
	return slices.Contains(j.diff.VersionsAdded, version) && !converts(j.live) && !converts(j.next)
}

// readable is a version in which the cluster serves its objects, the stored one if it can be.
func (j *Judge) readable() string {
	first := ""
	for _, v := range j.live.Spec.Versions {
		if v.Served && (first == "" || v.Storage) {
			first = v.Name
		}
	}
	return first
}

func converts(c apiextensionsv1.CustomResourceDefinition) bool {
	return c.Spec.Conversion != nil && c.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

func version(c apiextensionsv1.CustomResourceDefinition, name string) (
	apiextensionsv1.CustomResourceDefinitionVersion, bool,
) {
	i := slices.IndexFunc(c.Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name })
	if i < 0 {
		return apiextensionsv1.CustomResourceDefinitionVersion{}, false
	}
	return c.Spec.Versions[i], true
}

func served(c apiextensionsv1.CustomResourceDefinition, name string) bool {
	v, ok := version(c, name)
	return ok && v.Served
}

// Resource is where the cluster serves the objects.
func (j *Judge) Resource() (group, plural string) { return j.live.Spec.Group, j.live.Spec.Names.Plural }

// Versions are those in which the verdict needs the objects of the cluster, sorted: none where nothing that the plan
// changes can hurt them, so that most upgrades list nothing.
func (j *Judge) Versions() []string {
	out := make([]string, 0, len(j.was))
	for v := range j.was {
		out = append(out, v)
	}
	slices.Sort(out)
	return out
}

// Add takes one object as the cluster serves it in a version, and reports whether it was checked: it is not once the
// budget is used up or ctx has ended, and then no other is.
func (j *Judge) Add(ctx context.Context, version string, object map[string]any) bool {
	if j.budget.Spent() || ctx.Err() != nil {
		return false
	}
	j.budget.Bytes -= size(object)
	was := j.was[version]
	before := was.problems(ctx, object, j.budget)
	if ctx.Err() != nil {
		return false
	}
	j.out.Checked++
	for _, name := range was.checks {
		is := j.is[name]
		for _, field := range is.unknown(object) {
			j.dropped[field]++
		}
		problems := slices.DeleteFunc(is.problems(ctx, object, j.budget),
			func(p string) bool { return slices.Contains(before, p) })
		if len(problems) == 0 {
			continue
		}
		j.out.Invalid++
		if len(j.out.Sample) < maxSample {
			j.out.Sample = append(j.out.Sample, fmt.Sprintf("%s, as %s: %s", nameOf(object), name,
				strings.Join(problems[:min(len(problems), 3)], "; ")))
		}
		break // an object counts once
	}
	return true
}

func nameOf(object map[string]any) string {
	meta, ok := object["metadata"].(map[string]any)
	if !ok {
		return "?"
	}
	text := func(key string) string {
		s, ok := meta[key].(string)
		if !ok {
			return ""
		}
		return s
	}
	return strings.TrimPrefix(text("namespace")+"/"+text("name"), "/")
}
