package condition

import (
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// Upgradeable is the one type of condition that has an effect (R-COND-3).
const Upgradeable = "Upgradeable"

// ReasonOutdated is the code of a condition that its operator has not looked at since the object changed (R-COND-8).
const ReasonOutdated = "Outdated"

// Object is what an OperatorCondition says. The operator writes Spec.Conditions, cluster administrators write
// Spec.Overrides (R-COND-2), and Sync puts the conditions into Status; operators that know version v1 of the kind
// write Status themselves.
type Object struct {
	Metadata struct {
		Generation int64 `json:"generation"`
	} `json:"metadata"`
	Spec struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
		Overrides  []metav1.Condition `json:"overrides,omitempty"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status"`
}

// Decide says whether the operator may be upgraded; o is nil where there is no object. The first row that fits holds;
// TestDecide names each.
//
//	there is no object                                               upgradeable (R-COND-7)
//	an override Upgradeable is True                                  upgradeable (R-COND-6)
//	an override Upgradeable is not True                              not upgradeable (R-COND-6)
//	there is no condition Upgradeable                                upgradeable (R-COND-7)
//	the condition was observed in an older generation of the object  not upgradeable (R-COND-8)
//	the condition is False                                           not upgradeable (R-COND-3)
//	otherwise                                                        upgradeable
func Decide(o *Object) protocol.OperatorCondition {
	if o == nil {
		return protocol.OperatorCondition{Upgradeable: true}
	}
	if c := apimeta.FindStatusCondition(o.Spec.Overrides, Upgradeable); c != nil {
		return verdict(c, c.Status == metav1.ConditionTrue, true)
	}
	status, _ := Sync(*o)
	c := apimeta.FindStatusCondition(status, Upgradeable)
	switch {
	case c == nil:
		return protocol.OperatorCondition{Upgradeable: true}
	case c.ObservedGeneration < o.Metadata.Generation:
		return protocol.OperatorCondition{
			Reason: ReasonOutdated, Message: fmt.Sprintf("the operatorcondition status %q=%q is outdated", c.Type,
				c.Status),
		}
	}
	return verdict(c, c.Status != metav1.ConditionFalse, false)
}

func verdict(c *metav1.Condition, upgradeable, overridden bool) protocol.OperatorCondition {
	v := protocol.OperatorCondition{
		Upgradeable: upgradeable, Reason: cut(c.Reason), Message: cut(c.Message),
		Overridden: overridden,
	}
	if !upgradeable {
		v.Message = "the operator is not upgradeable: " + v.Message
	}
	return v
}

// maxText bounds the texts of a condition. An operator may write texts as long as an object can hold, and the history
// of its successor keeps twenty of them.
const maxText = 1 << 10

func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// Sync returns the status that an OperatorCondition is to have: the conditions of the spec, observed in this
// generation, beside those that only the status has (R-COND-8); changed reports whether it has another one.
func Sync(o Object) (status []metav1.Condition, changed bool) {
	status = slices.Clone(o.Status.Conditions)
	for _, c := range o.Spec.Conditions {
		old := apimeta.FindStatusCondition(status, c.Type)
		c.ObservedGeneration = o.Metadata.Generation
		if old != nil && old.Status == c.Status && c.LastTransitionTime.IsZero() {
			c.LastTransitionTime = old.LastTransitionTime
		}
		switch {
		case old == nil:
			status, changed = append(status, c), true
		case !same(*old, c):
			*old, changed = c, true
		}
	}
	return status, changed
}

func same(a, b metav1.Condition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message &&
		a.ObservedGeneration == b.ObservedGeneration &&
		a.LastTransitionTime.Equal(&b.LastTransitionTime)
}
