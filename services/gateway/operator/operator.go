// Package operator is the aggregate of what people ask of an installed operator: that it is uninstalled (R-UNI), and
// what counts in the place of its own conditions (R-COND-6). It lies in the stream of the ClusterServiceVersion, most
// of which the installer writes: what is seen in the cluster, and how far a removal is. The package is pure; ids come
// in as data.
package operator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// MaxCRDs bounds the definitions of one request; the most that a known operator owns are some 200.
const MaxCRDs = 1000

// Name identifies an installed operator.
type Name struct {
	Cluster   string
	Namespace string
	Name      string // of the ClusterServiceVersion
}

// Subject is the natural key, cluster/namespace/name.
func (n Name) Subject() string { return n.Cluster + "/" + n.Namespace + "/" + n.Name }

// State is an installed operator so far. The zero value is one that is not installed.
type State struct {
	Installed bool
	Name      Name
	Package   string
	Phase     string
	// Removal is the request that has not ended; nil without one.
	Removal *events.CSVRemovalRequested
	// Overrides count in the place of what the operator says; none without any. They end with the operator.
	Overrides []events.ConditionOverride
}

// Command is what can be asked: Uninstall, Override and RemoveOverrides.
type Command interface{ operatorCommand() }

// Uninstall asks that an operator is removed.
type Uninstall struct {
	ID   string   // of the request, if it is a new one
	CRDs []string // that are to be deleted with all objects of theirs
	Plan string   // digest of the removal plan that was shown, or ""
	// Dependants are the installed operators that depend on it, as the resolver knows.
	Dependants []previewapi.Dependant
}

func (Uninstall) operatorCommand() {}

// Phases in which an operator is on its way out already, since another one follows it (R-CSV-50).
const (
	phaseReplacing = "Replacing"
	phaseDeleting  = "Deleting"
)

// Decide returns the events that the command leads to; none if it changes nothing.
func Decide(s State, c Command) ([]events.Payload, error) {
	switch c := c.(type) {
	case Uninstall:
		return uninstall(s, c)
	case Override:
		return override(s, c)
	case RemoveOverrides:
		return removeOverrides(s)
	default:
		return nil, fmt.Errorf("operator: command %T is not known", c)
	}
}

func notInstalled(n Name) error {
	return errs.New(errs.NotFound, "no operator %q is installed in namespace %q of cluster %q", n.Name, n.Namespace,
		n.Cluster)
}

func uninstall(s State, u Uninstall) ([]events.Payload, error) {
	asked, err := u.event()
	if err != nil {
		return nil, err
	}
	switch {
	case !s.Installed:
		return nil, notInstalled(s.Name)
	case s.Removal != nil:
		return nil, again(s, asked)
	case u.Plan == "" && len(u.Dependants) > 0:
		return nil, u.needed(s.Name.Name)
	case s.Phase == phaseReplacing || s.Phase == phaseDeleting:
		return nil, errs.New(errs.Conflict, "operator %s is %s, since a newer one takes its place: uninstall that one",
			s.Name.Name, s.Phase).
			At("path.name", "operator-not-replaced")
	}
	return []events.Payload{asked}, nil
}

// again compares a request with the one that has not ended: asking twice is asking once, and what is carried out
// already cannot be asked otherwise.
func again(s State, asked events.CSVRemovalRequested) error {
	if slices.Equal(s.Removal.CRDs, asked.CRDs) && (asked.Plan == "" || s.Removal.Plan == asked.Plan) {
		return nil
	}
	return errs.New(errs.Conflict,
		"operator %s is being uninstalled already by removal %s, with other definitions or another plan: wait until "+
			"that has ended",
		s.Name.Name, s.Removal.Removal).At("path.name", "removal-ended")
}

// needed refuses the removal of what others depend on, unless the plan that names them was shown (R-UNI-4).
func (u Uninstall) needed(csv string) error {
	var whom []string
	for _, d := range u.Dependants {
		whom = append(whom, d.String()+" (an operator "+strings.Join(d.Requires, ", ")+")")
	}
	return errs.New(errs.Conflict,
		"operator %s is required by %s: remove those first, or read the removal plan with dryRun=true, and ask "+
			"for exactly that with plan=<its digest>",
		csv, strings.Join(whom, "; ")).At("query.plan", "nobody-depends-on-it")
}

// event is the request in its normal form: names sorted, each once.
func (u Uninstall) event() (events.CSVRemovalRequested, error) {
	var v rule.Violations
	e := events.CSVRemovalRequested{Removal: u.ID, Plan: u.Plan}
	for _, d := range u.Dependants {
		e.Dependants = append(e.Dependants, d.String())
	}
	slices.Sort(e.Dependants)
	if e.CRDs = slices.Compact(slices.Sorted(slices.Values(u.CRDs))); len(e.CRDs) == 0 {
		e.CRDs = nil
	}
	if len(e.CRDs) > MaxCRDs {
		v.Addf("query.crds", rule.MaxItems, "%d definitions are named, %d are allowed", len(e.CRDs), MaxCRDs)
	}
	for _, name := range e.CRDs[:min(len(e.CRDs), MaxCRDs)] {
		v.DNSSubdomainName("query.crds", name)
	}
	return e, v.Err()
}

// Evolve returns the state after an event. An event of another kind of stream is an error.
func Evolve(s State, p events.Payload) (State, error) {
	switch e := p.(type) {
	case events.CSVPhaseChanged:
		s.Installed, s.Package, s.Phase = true, e.Package, e.Phase
		s.Name = Name{Cluster: e.Cluster, Namespace: e.Namespace, Name: e.Name}
	case events.CSVRemovalRequested:
		s.Removal = &e
	case events.CSVRemovalDirected:
		asked := e.Request()
		s.Removal = &asked
	case events.CSVRemovalRefused:
		if s.Removal != nil && s.Removal.Removal == e.Removal {
			s.Removal = nil
		}
	case events.OperatorConditionOverridden:
		s.Overrides = e.Overrides
	case events.OperatorConditionOverridesRemoved:
		s.Overrides = nil
	case events.CSVRemoved:
		return State{Name: s.Name}, nil
	case events.CSVRemovalStarted, events.CSVRemovalBlocked, events.CSVFlapping, events.CSVDrifted,
		events.CSVDriftEnded, events.CSVReadinessChanged,
		events.OperatorConditionChanged:
	default:
		return s, fmt.Errorf("operator: event %s does not belong in the stream of a ClusterServiceVersion",
			p.EventType())
	}
	return s, nil
}
