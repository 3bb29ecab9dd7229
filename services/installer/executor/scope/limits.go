package scope

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// Limits are the targets that operators of a group may not be given, since their accounts have not what is to be given.
type Limits struct {
	Denied  map[string][]string // targets, sorted, by operator; "" is the whole cluster
	Hold    []string            // objects in them that stay as they are, as Set.Hold
	Missing []protocol.MissingPermission
	More    int           // missing, and not listed
	Again   time.Duration // when the accounts are to be asked again; 0 is never
}

// Of reports whether an operator may not be given a target.
func (l *Limits) Of(operator, target string) bool { return slices.Contains(l.Denied[operator], target) }

// Targets are the targets that an operator is notified of and has its rights in: those of its group without those that
// it may not be given. Where it may not have the whole cluster it is told so all the same, and does not come to it: it
// waits for its rights and stays as it was.
func (l *Limits) Targets(operator string, targets []string) []string {
	return slices.DeleteFunc(slices.Clone(targets), func(t string) bool {
		return t != metav1.NamespaceAll &&
			l.Of(operator, t)
	})
}
