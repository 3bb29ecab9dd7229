package removal

import (
	"cmp"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// All asks for all definitions of the operator's own.
const All = "*"

// Definition is one custom resource definition of the cluster that the operator owns or has brought.
type Definition struct {
	protocol.ObjectRef
	Managed bool // Chandler wrote it, and it was not there before
	// Alongside are the operators that the definition itself names as its owners, as namespace/csv. One that is not
	// installed any more does not count.
	Alongside []string
	// Converts is set where the operator's webhook converts its objects.
	Converts bool
	// Loss is what is there of it; it is told where the definition goes.
	Loss protocol.Loss
}

// Owned is one object that names the operator as its owner.
type Owned struct {
	protocol.ObjectRef
	// Alongside are the operators that the object itself names as those that brought it, as namespace/csv.
	Alongside []string
}

// Input is everything that decides what a removal does.
type Input struct {
	Operator Operator
	// Object is what stands for the operator in the cluster; it goes last. Its Kind is "" where it is gone already.
	Object protocol.ObjectRef
	// UID is that of Object.
	UID string
	// CRDs are the names of the definitions that are to go, or All.
	CRDs []string
	// Objects name the operator as their owner, in any order.
	Objects []Owned
	// Common are objects that the operator has and another one holds: they stay as they are, without its name.
	Common []Owned
	// Before name it, too, and were there before Chandler: they stay, without that name.
	Before      []protocol.ObjectRef
	Definitions []Definition
	Others      []Operator // every other installed operator of the cluster
	// Dependants are operators that the hub knows to depend on it, as namespace/csv.
	Dependants []string
}

// Plan says what a removal would do. A definition that is asked for and is none of the operator's own is
// errs.Invalid.
func Plan(in Input) (protocol.RemovalPlan, error) {
	if err := in.check(); err != nil {
		return protocol.RemovalPlan{}, err
	}
	p := protocol.RemovalPlan{
		CSV: in.Operator.Name, UID: in.UID, Steps: []protocol.RemovalStep{}, Stays: []protocol.Leftover{},
		Needed: in.dependants(),
	}
	var doomed, converted []protocol.ObjectRef
	definitions := slices.SortedFunc(slices.Values(in.Definitions),
		func(a, b Definition) int { return strings.Compare(a.Name, b.Name) })
	for _, d := range definitions {
		if d.Converts && !bundle.Reserved(bundle.GroupOf(d.Name)) {
			converted = append(converted, d.ObjectRef)
		}
		reason, owners := in.reasonToStay(d)
		if reason == "" {
			doomed, p.Losses = append(doomed, d.ObjectRef), append(p.Losses, d.Loss)
			continue
		}
		p.Stays = append(p.Stays, protocol.Leftover{ObjectRef: d.ObjectRef, Reason: reason, Owners: owners})
	}
	for _, o := range slices.SortedFunc(slices.Values(in.Before), compare) {
		p.Stays = append(p.Stays, protocol.Leftover{ObjectRef: o, Reason: protocol.LeftNotOurs})
	}
	own, shared := in.shared()
	p.Stays = append(p.Stays, shared...)
	for _, o := range slices.SortedFunc(slices.Values(in.Common),
		func(a, b Owned) int { return compare(a.ObjectRef, b.ObjectRef) }) {
		p.Stays = append(p.Stays, protocol.Leftover{
			ObjectRef: o.ObjectRef, Reason: protocol.LeftOtherOwners,
			Owners: in.sharing(o),
		})
	}
	calls, programs, rest := stages(own)
	add(&p, protocol.RemovalCustomResources, doomed)
	add(&p, protocol.RemovalConversion, converted)
	add(&p, protocol.RemovalObjects, calls)
	add(&p, protocol.RemovalObjects, programs)
	add(&p, protocol.RemovalObjects, rest)
	add(&p, protocol.RemovalCRDs, doomed)
	if in.Object.Kind != "" {
		add(&p, protocol.RemovalObjects, []protocol.ObjectRef{in.Object})
	}
	return p, nil
}

func add(p *protocol.RemovalPlan, action string, objects []protocol.ObjectRef) {
	if len(objects) > 0 {
		p.Steps = append(p.Steps, protocol.RemovalStep{Action: action, Objects: objects})
	}
}

// check refuses names of definitions that are none of the operator's own: most likely they are mistyped.
func (in Input) check() error {
	own := in.Operator.crds()
	for _, d := range in.Definitions {
		own = append(own, d.Name)
	}
	slices.Sort(own)
	own = slices.Compact(own)
	for _, name := range in.CRDs {
		if name != All && !slices.Contains(own, name) {
			return errs.New(errs.Invalid, "%q is no custom resource definition of %s, which has: %s", name, in.Operator,
				cmp.Or(strings.Join(own, ", "), "none")).
				At("query.crds", "crd-of-operator")
		}
	}
	return nil
}

// reasonToStay says why a definition is left, and who else owns it; "" where it goes (R-UNI-2):
//
//	an installed operator owns it, too    OtherOwners, whether it was asked for or not
//	Chandler did not write it first       NotOurs, whether it was asked for or not
//	its API group is a reserved one       NotOurs, whether it was asked for or not
//	it was not asked for                  NotAsked
//	it was asked for, by name or with *   it goes
func (in Input) reasonToStay(d Definition) (reason string, owners []string) {
	if owners = in.owners(d); len(owners) > 0 {
		return protocol.LeftOtherOwners, owners
	}
	switch {
	case !d.Managed, bundle.Reserved(bundle.GroupOf(d.Name)):
		return protocol.LeftNotOurs, nil
	case !slices.Contains(in.CRDs, d.Name) && !slices.Contains(in.CRDs, All):
		return protocol.LeftNotAsked, nil
	}
	return "", nil
}

// shared parts objects that go with the operator from those that another installed operator brought, too: these are
// that one's from then on.
func (in Input) shared() (own []protocol.ObjectRef, stay []protocol.Leftover) {
	objects := slices.SortedFunc(slices.Values(in.Objects),
		func(a, b Owned) int { return compare(a.ObjectRef, b.ObjectRef) })
	for _, o := range objects {
		owners := in.sharing(o)
		if len(owners) == 0 {
			own = append(own, o.ObjectRef)
			continue
		}
		stay = append(stay, protocol.Leftover{ObjectRef: o.ObjectRef, Reason: protocol.LeftOtherOwners, Owners: owners})
	}
	return own, stay
}

// sharing are the other installed operators that brought an object, too, sorted.
func (in Input) sharing(o Owned) []string {
	var owners []string
	for _, other := range in.Others {
		if slices.Contains(o.Alongside, other.String()) {
			owners = append(owners, other.String())
		}
	}
	slices.Sort(owners)
	return owners
}

// owners are the other installed operators that own a definition: those that say so, and those of which the
// definition does.
func (in Input) owners(d Definition) []string {
	var out []string
	for _, o := range in.Others {
		if slices.Contains(o.crds(), d.Name) || slices.Contains(d.Alongside, o.String()) {
			out = append(out, o.String())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// stages puts what goes, in order, into three stretches: what sends requests of the API server to the operator, its
// programs, and the rest.
func stages(objects []protocol.ObjectRef) (calls, programs, rest []protocol.ObjectRef) {
	for _, o := range objects {
		switch o.Kind {
		case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService":
			calls = append(calls, o)
		case "Deployment":
			programs = append(programs, o)
		default:
			rest = append(rest, o)
		}
	}
	return calls, programs, rest
}

// compare puts accounts and rights behind what uses them.
func compare(a, b protocol.ObjectRef) int {
	return cmp.Or(rank(a)-rank(b), strings.Compare(a.Group, b.Group), strings.Compare(a.Kind, b.Kind),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

func rank(o protocol.ObjectRef) int {
	switch o.Kind {
	case "RoleBinding", "ClusterRoleBinding":
		return 1
	case "Role", "ClusterRole":
		return 2
	case "ServiceAccount":
		return 3
	}
	return 0
}

// planType is the type prefix of a plan's digest.
const planType = "chandler.removal-plan.v1"

// Digest names a plan, so that what is carried out is what was shown.
func Digest(p protocol.RemovalPlan) (digest.Digest, error) {
	p.Losses = nil
	return digest.JSON(planType, p)
}

// Why a request ends without effect.
const (
	RefusedChanged = "RemovalPlanChanged"
	RefusedNeeded  = "NeededByOthers"
	// RefusedAnother ends one that has begun: its operator is gone, and another one bears the name.
	RefusedAnother = "AnotherInstalled"
)

// ChangedMessage is the message of a request that ends because its plan has changed.
func ChangedMessage(csv string) string {
	return csv +
		" is another one by now than this removal began with: it was removed by somebody and installed again; " +
		"what is there stays as it is: look at the removal plan again, and ask anew if it is to go, too"
}

// Refuse says why a request is not carried out; reason is "" where it is. shown is the digest of the plan that
// somebody looked at, "" where nobody did:
//
//	shown, and the plan is another one now        RemovalPlanChanged
//	not shown, and other operators depend on it   NeededByOthers
//	shown, and the plan is the same               carried out, whoever needs it: that was in the plan
//	not shown, and nobody needs it                carried out
func Refuse(p protocol.RemovalPlan, shown string) (reason, message string, err error) {
	if shown == "" {
		if len(p.Needed) > 0 {
			return RefusedNeeded, strings.Join(p.Needed, ", ") + " depend on " + p.CSV +
				": remove those first, or look at the removal plan and ask for exactly that", nil
		}
		return "", "", nil
	}
	now, err := Digest(p)
	if err != nil || string(now) == shown {
		return "", "", err
	}
	return RefusedChanged, "what would be removed now is not what was shown (" + string(now) + ", not " + shown +
		"): look at the removal plan again", nil
}
