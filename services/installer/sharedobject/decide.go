package sharedobject

import (
	"cmp"
	"slices"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
)

// Owner is an operator that installs an object. All its versions are one owner: a package in a namespace.
type Owner struct {
	Namespace string
	Package   string
	CSV       string
	Wants     string // digest of the content that it wants, "" where unknown
}

// String is namespace/csv.
func (o Owner) String() string { return o.Namespace + "/" + o.CSV }

// Is reports whether both are the same operator, in whatever version.
func (o Owner) Is(other Owner) bool {
	return o.Namespace == other.Namespace && o.Package == other.Package
}

// Input is what decides how an operator writes an object that is there.
type Input struct {
	Writer Owner
	// Holder is the installed operator whose content the object has; nil for none.
	Holder *Owner
	// Others are the other installed owners, the holder among them.
	Others []Owner
	// Before is the content that the writer, or its previous version, wanted when it wrote the object; "" if it did
	// not.
	Before string
	// Equal reports that the object has the content that the writer wants, as the API server reads both.
	Equal bool
	// Choice is what approvers chose for exactly this finding; "" for nothing.
	Choice string
}

// Outcome is how an operator writes an object.
type Outcome int

// The outcomes.
const (
	// Hold writes the whole object: the writer is its holder from then on.
	Hold Outcome = iota
	// Share leaves the content as it is and adds the writer as an owner.
	Share
	// Ask writes nothing until a person has chosen.
	Ask
)

// Decide is the table of shared objects; the first row that applies counts:
//
//	1  Take was chosen                                                         Hold
//	2  Keep was chosen, and somebody else wants what the object has            Share
//	3  nobody is installed who holds it, or the writer does:
//	     nobody of another package has it                                      Hold
//	     the writer wants what it wanted before, or what the object has        Hold
//	     all others want the same as the writer                                Hold: it changes with the last of them
//	4  another holds it, and the object is as the writer wants it              Share
//	5  another holds it, and the writer wants what it wanted before            Share: that was settled
//	6  the same package holds it in another namespace, and those of other      Hold: the newest form of the package counts
//	   packages, if any, want the same as the writer
//	7  otherwise                                                               Ask
func Decide(in Input) Outcome {
	strangers := slices.DeleteFunc(slices.Clone(in.Others),
		func(o Owner) bool { return o.Package == in.Writer.Package })
	agreed := !slices.ContainsFunc(strangers, func(o Owner) bool { return o.Wants != in.Writer.Wants })
	before := in.Before != "" && in.Before == in.Writer.Wants
	own := in.Holder == nil || in.Holder.Is(in.Writer)
	switch {
	case in.Choice == events.ChoiceTake:
		return Hold
	case in.Choice == events.ChoiceKeep && in.successor() != nil:
		return Share
	case own && (agreed || before || in.Equal):
		return Hold
	case !own && (in.Equal || before):
		return Share
	case !own && in.Holder.Package == in.Writer.Package && agreed:
		return Hold
	}
	return Ask
}

// successor is who holds the object when the writer leaves its form as it is: its holder, else, where that is the
// writer, one who wants the form that the writer wanted until now.
func (in Input) successor() *Owner {
	if in.Holder != nil && !in.Holder.Is(in.Writer) {
		return in.Holder
	}
	i := slices.IndexFunc(in.Others, func(o Owner) bool { return o.Wants != "" && o.Wants == in.Before })
	if i < 0 {
		return nil
	}
	return &in.Others[i]
}

// Elected is who holds the object after an outcome; nil where nobody has chosen.
func (in Input) Elected(o Outcome) *Owner {
	switch o {
	case Hold:
		return &in.Writer
	case Share:
		return in.successor()
	case Ask:
	}
	return nil
}

// findingType is the type prefix of a finding's digest.
const findingType = "chandler.shared-finding.v1"

// Finding is the digest of what a person is asked: which object, what the plan brings, what the cluster has, and who
// has it. stands is the form of the object where its holder has noted none. Versions are no part of it.
func (in Input) Finding(object, stands string) (string, error) {
	type owner struct {
		Namespace string `json:"namespace"`
		Package   string `json:"package"`
		Wants     string `json:"wants"`
	}
	of := func(o Owner) owner { return owner{o.Namespace, o.Package, o.Wants} }
	owners := make([]owner, 0, len(in.Others))
	for _, o := range in.Others {
		owners = append(owners, of(o))
	}
	slices.SortFunc(owners, func(a, b owner) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Package, b.Package))
	})
	if in.Holder != nil && !in.Holder.Is(in.Writer) && in.Holder.Wants != "" {
		stands = in.Holder.Wants
	} else if in.Holder != nil && in.Holder.Is(in.Writer) && in.Before != "" {
		stands = in.Before
	}
	d, err := digest.JSON(findingType, map[string]any{
		"object": object, "writer": of(in.Writer), "stands": stands,
		"owners": owners,
	})
	return string(d), err
}
