// Package operatorgroup is the aggregate of one operator group: the intent that the operators of a
// namespace serve a set of namespaces (R-OG-1). It is pure.
//
// Two groups in one namespace are accepted, as Kubernetes accepts them, and shown as what they are:
// plans of the namespace wait until one is left (R-OG-2, R-IP-42).
package operatorgroup

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	shared "github.com/chandler-fleet/chandler/libs/operatorgroup"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// Words of the spec.
const (
	StrategyDefault     = "Default"
	StrategyFailForward = "TechPreviewUnsafeFailForward"
	ColocationShared    = "shared"
)

// executorAccount is the account under which Chandler writes in clusters.
const executorAccount = "chandler-executor"

// MaxTargets bounds the explicit target namespaces: one RBAC set is made for each, and more than
// this many is what the global form is for (R-OG-3).
const MaxTargets = 100

// MaxExpressions bounds the expressions of a selector, and the values of each.
const MaxExpressions = 50

// MaxProvidedAPIs bounds what a static group reserves.
const MaxProvidedAPIs = 1000

// reAPI is Kind.version.group (R-OG-20).
var reAPI = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*\.v[a-z0-9]+(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`)

// Name identifies an operator group.
type Name struct {
	Cluster   string
	Namespace string
	Name      string
}

// Subject is the natural key, cluster/namespace/name.
func (n Name) Subject() string { return n.Cluster + "/" + n.Namespace + "/" + n.Name }

// State is a group's intent so far. The zero value is a group that was never created.
type State struct {
	Created  bool
	Name     Name
	Spec     events.OperatorGroupSpec
	Metadata events.Metadata
}

// Command is one of Create, Change and Delete.
type Command interface{ operatorGroupCommand() }

// Create makes the group.
type Create struct {
	Name     Name
	Spec     events.OperatorGroupSpec
	Metadata events.Metadata
}

// Change replaces the whole intent.
type Change struct {
	Spec     events.OperatorGroupSpec
	Metadata events.Metadata
}

// Delete ends the group.
type Delete struct{}

func (Create) operatorGroupCommand() {}
func (Change) operatorGroupCommand() {}
func (Delete) operatorGroupCommand() {}

// Decide returns the events that the command leads to; none if it changes nothing.
func Decide(s State, c Command) ([]events.Payload, error) {
	switch c := c.(type) {
	case Create:
		if s.Created {
			return nil, errs.New(errs.AlreadyExists, "an operator group %q exists already", c.Name.Subject())
		}
		if err := check(&c.Name, c.Spec); err != nil {
			return nil, err
		}
		out := []events.Payload{events.OperatorGroupCreated{
			Cluster: c.Name.Cluster, Namespace: c.Name.Namespace, Name: c.Name.Name, Spec: normal(c.Spec),
		}}
		return noted(out, s.Metadata, c.Metadata), nil
	case Change:
		return change(s, c)
	case Delete:
		if !s.Created {
			return nil, notFound(s.Name)
		}
		return []events.Payload{events.OperatorGroupDeleted{}}, nil
	default:
		return nil, fmt.Errorf("operator group: command %T is not known", c)
	}
}

func change(s State, c Change) ([]events.Payload, error) {
	if !s.Created {
		return nil, notFound(s.Name)
	}
	if err := check(nil, c.Spec); err != nil {
		return nil, err
	}
	var out []events.Payload
	if !reflect.DeepEqual(normal(c.Spec), normal(s.Spec)) {
		out = append(out, events.OperatorGroupChanged{Spec: normal(c.Spec)})
	}
	return noted(out, s.Metadata, c.Metadata), nil
}

// noted adds that labels or annotations are others from now on, where they are.
func noted(out []events.Payload, now, next events.Metadata) []events.Payload {
	if next.Equal(now) {
		return out
	}
	return append(out, events.OperatorGroupMetadataChanged{Metadata: next})
}

func notFound(n Name) error {
	return errs.New(errs.NotFound, "no operator group %q exists in namespace %q of cluster %q", n.Name, n.Namespace,
		n.Cluster)
}

func check(n *Name, s events.OperatorGroupSpec) error {
	var v rule.Violations
	if n != nil {
		v.DNSLabelName("/cluster", n.Cluster)
		v.OpenNamespace("/namespace", n.Namespace)
		v.DNSSubdomainName("/name", n.Name)
	}
	if len(s.TargetNamespaces) > MaxTargets {
		v.Addf("/targetNamespaces", rule.MaxItems,
			"%d target namespaces are given, %d are allowed; leave the list out to serve all namespaces",
			len(s.TargetNamespaces), MaxTargets)
	}
	for i, ns := range s.TargetNamespaces {
		v.OpenNamespace("/targetNamespaces/"+strconv.Itoa(i), ns)
	}
	checkSelector(&v, s.Selector)
	checkProvided(&v, s)
	if s.ServiceAccountName != "" {
		v.DNSSubdomainName("/serviceAccountName", s.ServiceAccountName)
		if s.ServiceAccountName == executorAccount {
			v.Addf("/serviceAccountName", "reserved-account",
				"service account %q is the name of Chandler's own: choose another", s.ServiceAccountName)
		}
	}
	checkNamespaceLabels(&v, s.NamespaceLabels)
	checkNamespaceAnnotations(&v, s.NamespaceAnnotations)
	v.OneOf("/upgradeStrategy", s.UpgradeStrategy, "", StrategyDefault, StrategyFailForward)
	v.OneOf("/colocation", s.Colocation, "", ColocationShared)
	return v.Err()
}

// CheckNamespaceLabels refuses labels that no operator group may want of its namespace.
func CheckNamespaceLabels(labels map[string]string) error {
	var v rule.Violations
	checkNamespaceLabels(&v, labels)
	return v.Err()
}

// checkNamespaceLabels refuses what no API server would take for labels of a namespace, and what Chandler or the API
// server itself says by them.
func checkNamespaceLabels(v *rule.Violations, labels map[string]string) {
	const at = "/namespaceLabels"
	v.Labels(at, labels)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		switch {
		case render.OwnWord(key):
			v.Addf(at+"/"+rule.Escape(key), rule.ReservedKey,
				"key %q is one by which objects of operators are found in clusters: choose another", key)
		case key == corev1.LabelMetadataName:
			v.Addf(at+"/"+rule.Escape(key), rule.ReservedKey,
				"label %q is set by the API server of the cluster: leave it out", key)
		}
	}
}

// checkNamespaceAnnotations takes settings of a namespace: they are short, somebody has chosen them, and PostgreSQL can
// hold them.
func checkNamespaceAnnotations(v *rule.Violations, annotations map[string]string) {
	const at = "/namespaceAnnotations"
	if n := len(annotations); n > shared.MaxNamespaceAnnotations {
		v.Addf(at, rule.MaxItems, "%s has %d entries, %d are allowed", at, n, shared.MaxNamespaceAnnotations)
		return
	}
	v.Annotations(at, annotations)
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		field, value := at+"/"+rule.Escape(key), annotations[key]
		if why := shared.ReservedAnnotation(key); why != "" {
			v.Addf(field, rule.ReservedKey, "annotation %q is no setting of a namespace: %s", key, why)
		}
		if len(value) > shared.MaxNamespaceAnnotation {
			v.Addf(field, rule.MaxLength, "annotation %q has %d bytes, %d are allowed: settings are short", key,
				len(value), shared.MaxNamespaceAnnotation)
		}
		if strings.ContainsFunc(value, func(r rune) bool { return r != '\n' && r != '\t' && unicode.IsControl(r) }) {
			v.Addf(field, rule.Text, "annotation %q has control characters: newline and tab alone are allowed", key)
		}
	}
}

// checkSelector refuses what no API server would take for a label selector.
func checkSelector(v *rule.Violations, s events.LabelSelector) {
	v.Labels("/selector/matchLabels", s.MatchLabels)
	if len(s.MatchExpressions) > MaxExpressions {
		v.Addf("/selector/matchExpressions", rule.MaxItems, "%d expressions are given, %d are allowed",
			len(s.MatchExpressions), MaxExpressions)
		return
	}
	for i, e := range s.MatchExpressions {
		at := "/selector/matchExpressions/" + strconv.Itoa(i)
		v.Labels(at+"/key", map[string]string{e.Key: ""})
		v.OneOf(at+"/operator", e.Operator, "In", "NotIn", "Exists", "DoesNotExist")
		switch listed := e.Operator == "In" || e.Operator == "NotIn"; {
		case listed && len(e.Values) == 0:
			v.Addf(at+"/values", rule.Required, "%s needs at least one value", e.Operator)
		case !listed && len(e.Values) > 0:
			v.Addf(at+"/values", rule.MaxItems, "%s takes no values", e.Operator)
		case len(e.Values) > MaxExpressions:
			v.Addf(at+"/values", rule.MaxItems, "%d values are given, %d are allowed", len(e.Values), MaxExpressions)
		}
		for _, value := range e.Values {
			v.Labels(at+"/values", map[string]string{"value": value})
		}
	}
}

// checkProvided takes provided APIs of a static group only (R-OG-30): those of any other are what its operators
// provide.
func checkProvided(v *rule.Violations, s events.OperatorGroupSpec) {
	if len(s.ProvidedAPIs) > 0 && !s.StaticProvidedAPIs {
		v.Addf("/providedAPIs", "R-OG-30",
			"provided APIs are set for a static group only; set staticProvidedAPIs, or leave them to the operators "+
				"of the namespace")
	}
	if len(s.ProvidedAPIs) > MaxProvidedAPIs {
		v.Addf("/providedAPIs", rule.MaxItems, "%d provided APIs are given, %d are allowed", len(s.ProvidedAPIs),
			MaxProvidedAPIs)
		return
	}
	for i, a := range s.ProvidedAPIs {
		if !reAPI.MatchString(a) {
			v.Addf("/providedAPIs/"+strconv.Itoa(i), "R-OG-20",
				"provided API %q: want Kind.version.group, such as Gauge.v1.sea.test", a)
		}
	}
}

// Check says what is wrong with the spec of a group, wherever it will be.
func Check(s events.OperatorGroupSpec) error { return check(nil, s) }

// WritesNamespace says whether other labels or annotations of a namespace are written by next than by before, or by
// another account. That wants the right to approve plans there (ADR 0063).
func WritesNamespace(before, next events.OperatorGroupSpec) bool {
	same := maps.Equal(before.NamespaceLabels, next.NamespaceLabels) &&
		maps.Equal(before.NamespaceAnnotations, next.NamespaceAnnotations)
	sameAccount := before.ServiceAccountName == next.ServiceAccountName ||
		len(next.NamespaceLabels)+len(next.NamespaceAnnotations) == 0
	return !same || !sameAccount
}

// Normal gives specs that mean the same one form.
func Normal(s events.OperatorGroupSpec) events.OperatorGroupSpec { return normal(s) }

// normal sorts what is a set and drops repeated members, so that the same set is the same intent.
func normal(s events.OperatorGroupSpec) events.OperatorGroupSpec {
	s.TargetNamespaces = set(s.TargetNamespaces)
	s.ProvidedAPIs = set(s.ProvidedAPIs)
	s.Selector.MatchExpressions = slices.Clone(s.Selector.MatchExpressions)
	for i, e := range s.Selector.MatchExpressions {
		s.Selector.MatchExpressions[i].Values = set(e.Values)
	}
	if len(s.NamespaceLabels) == 0 {
		s.NamespaceLabels = nil // as a stored event has it
	}
	if len(s.NamespaceAnnotations) == 0 {
		s.NamespaceAnnotations = nil
	}
	if s.UpgradeStrategy == StrategyDefault {
		s.UpgradeStrategy = ""
	}
	return s
}

func set(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }

// Evolve returns the state after an event. An event of another kind of stream is an error.
func Evolve(s State, p events.Payload) (State, error) {
	switch e := p.(type) {
	case events.OperatorGroupCreated:
		return State{Created: true, Name: Name{Cluster: e.Cluster, Namespace: e.Namespace, Name: e.Name}, Spec: e.Spec},
			nil
	case events.OperatorGroupPlaced: // from then on it is the namespace's
		return State{Created: true, Name: Name{Cluster: e.Cluster, Namespace: e.Namespace, Name: e.Name}, Spec: e.Spec},
			nil
	case events.OperatorGroupChanged:
		s.Spec = e.Spec
	case events.OperatorGroupMetadataChanged:
		s.Metadata = e.Metadata
	case events.OperatorGroupDeleted:
		return State{Name: s.Name}, nil
	case events.OperatorGroupObserved: // what it came to is the installer's to say
	default:
		return s, fmt.Errorf("operator group: event %s does not belong in an operator group's stream", p.EventType())
	}
	return s, nil
}

// DeclaredTargets are the target namespaces as far as the spec alone names them: all for a global group, none for a
// selector.
func DeclaredTargets(s events.OperatorGroupSpec) []string {
	if s.Global() {
		return []string{""}
	}
	return append([]string{}, s.TargetNamespaces...)
}
