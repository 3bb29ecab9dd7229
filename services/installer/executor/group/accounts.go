package group

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/permissions"
)

// wholeCluster stands for all namespaces among targets.
const wholeCluster = ""

// Scoped is an operator that was installed through a service account (R-OG-60).
type Scoped struct {
	Name, UID string
	Account   kube.Account
	Own       []render.Object // its rights in its own namespace, as render.Permissions gives them
}

// Lacks asks what an account lacks of what roles are to give on its behalf.
type Lacks func(ctx context.Context, a kube.Account, roles []render.Object) (permissions.Result, error)

// Accounts remembers what accounts were asked. An operator keeps what it was given in a target, whatever its account
// may do later (R-OG-64); it is given what its account has, and no more.
type Accounts struct {
	// refusedFor is how long it is relied on that an account lacks rights: of one that is granted no notification
	// comes.
	refusedFor time.Duration

	mu      sync.Mutex
	allowed map[string]bool // by operator, target and what is given
	refused map[string]refusal
}

type refusal struct {
	result permissions.Result
	until  time.Time
}

// NewAccounts returns what a new session knows: nothing. An account that lacks rights is asked again after refusedFor.
func NewAccounts(refusedFor time.Duration) *Accounts {
	return &Accounts{refusedFor: refusedFor, allowed: map[string]bool{}, refused: map[string]refusal{}}
}

// Limit says which of the targets the operators of a namespace may not be given; targets are those that exist, or ""
// alone:
//
//	it was found before that its account has the rights     it may
//	all that it is to have there is there as it is to be    it may: it was given
//	its account holds every rule in the target              it may
//	else                                                    it may not; what is there of it stays as it is
//
// Somebody else who made what an operator is to have there had to hold the rules, too: the API server sees to it.
func (a *Accounts) Limit(ctx context.Context, c Cluster, namespace string, operators []Scoped, targets []string,
	lacks Lacks, now time.Time,
) (scope.Limits, error) {
	l := scope.Limits{Denied: map[string][]string{}}
	open, err := a.open(operators, targets)
	if err != nil || len(open) == 0 {
		return l, err
	}
	live, err := list(ctx, c, TargetSet(namespace, nil))
	if err != nil {
		return l, err
	}
	for _, q := range open {
		result, wait, err := a.ask(ctx, q, live, lacks, now)
		if err != nil {
			return l, fmt.Errorf("what account %s may give in %q: %w", q.operator.Account.User(), q.target, err)
		}
		if wait > 0 {
			deny(&l, q.operator, q.target, result, wait)
		}
	}
	for _, o := range operators {
		hold(&l, o, live)
	}
	return l, nil
}

// question is whether an operator may be given something in a target.
type question struct {
	operator Scoped
	target   string
	given    []render.Object
	key      string
}

// open are the questions that were not answered with yes before.
func (a *Accounts) open(operators []Scoped, targets []string) (out []question, err error) {
	for _, o := range operators {
		for _, t := range targets {
			q := question{operator: o, target: t, given: CopiedRoles(o.Own, []string{t}, t == wholeCluster)}
			if q.key, err = askedFor(o, t, q.given); err != nil {
				return nil, err
			}
			if len(q.given) > 0 && !a.may(q.key) {
				out = append(out, q)
			}
		}
	}
	return out, nil
}

// askedFor names what is given to an operator in a target.
func askedFor(o Scoped, target string, given []render.Object) (string, error) {
	bodies := make([]map[string]any, len(given))
	for i, g := range given {
		bodies[i] = g.Body
	}
	d, err := digest.JSON(setType, map[string]any{
		"operator": o.UID, "account": o.Account.User(), "target": target,
		"given": bodies,
	})
	return string(d), err
}

func (a *Accounts) may(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.allowed[key]
}

// ask answers a question; the operator may where wait is 0.
func (a *Accounts) ask(ctx context.Context, q question, live map[object]*unstructured.Unstructured, lacks Lacks,
	now time.Time,
) (result permissions.Result, wait time.Duration, err error) {
	a.mu.Lock()
	r, refused := a.refused[q.key]
	a.mu.Unlock()
	if refused && now.Before(r.until) {
		return r.result, r.until.Sub(now), nil
	}
	if !slices.ContainsFunc(q.given, func(g render.Object) bool {
		have := live[object{g.GVK, g.Namespace, g.Name}]
		return have == nil || !has(have.Object, g.Body)
	}) {
		a.note(q.key, permissions.Result{}, now)
		return result, 0, nil
	}
	if result, err = lacks(ctx, q.operator.Account, q.given); err != nil {
		return result, 0, err
	}
	a.note(q.key, result, now)
	if len(result.Missing) > 0 {
		wait = a.refusedFor
	}
	return result, wait, nil
}

func (a *Accounts) note(key string, r permissions.Result, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(r.Missing) > 0 {
		a.refused[key] = refusal{r, now.Add(a.refusedFor)}
		return
	}
	delete(a.refused, key)
	a.allowed[key] = true
}

func deny(l *scope.Limits, o Scoped, target string, r permissions.Result, wait time.Duration) {
	l.Denied[o.Name] = append(l.Denied[o.Name], target)
	slices.Sort(l.Denied[o.Name])
	for _, m := range r.Missing {
		m.For = ""
		if !slices.Contains(l.Missing, m) {
			l.Missing = append(l.Missing, m)
		}
	}
	l.More += r.More
	if l.Again == 0 || wait < l.Again {
		l.Again = wait
	}
}

// hold notes what is there of an operator in targets that it may not be given; where that is the whole cluster, all of
// it.
func hold(l *scope.Limits, o Scoped, live map[object]*unstructured.Unstructured) {
	if len(l.Denied[o.Name]) == 0 {
		return
	}
	for key, have := range live {
		if have.GetLabels()[render.LabelOwner] == render.OwnerLabelValue(o.Name) &&
			(l.Of(o.Name, key.namespace) || l.Of(o.Name, wholeCluster)) {
			l.Hold = append(l.Hold, key.String())
		}
	}
	slices.Sort(l.Hold)
}
