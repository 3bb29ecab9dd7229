package testcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stored is what a cluster has in etcd, by key below its prefix.
type stored map[string]storedValue

type storedValue struct {
	value    []byte
	revision int64 // of the last write
}

// Parts of what is stored.
const (
	namespacesPart = "/namespaces/"
	policiesPart   = "/validatingadmissionpolicies/"
	eventsPart     = "/events/"
	leasesPart     = "/leases/"
)

// How long nothing may be written after a start until it counts as over: controllers make what belongs to a new cluster
// some time after a deployment works.
const (
	quietFor   = 600 * time.Millisecond
	quietCheck = 100 * time.Millisecond
)

// difference is what has to be done to come back to what was stored before.
type difference struct {
	added   []string // keys to delete
	changed []string // keys to write, changed or deleted since
}

func (d difference) empty() bool { return len(d.added)+len(d.changed) == 0 }

func (d difference) String() string {
	return fmt.Sprintf("%d added, as %.5q; %d changed, as %.5q",
		len(d.added), d.added[:min(len(d.added), 5)], len(d.changed), d.changed[:min(len(d.changed), 5)])
}

// since compares. Leases that were there before are renewed all the time, and events tell of the past.
func (s stored) since(before stored) difference {
	var d difference
	for key := range s {
		if _, ok := before[key]; !ok && !strings.HasPrefix(key, eventsPart) {
			d.added = append(d.added, key)
		}
	}
	for key, was := range before {
		if !strings.HasPrefix(key, leasesPart) && !strings.HasPrefix(key, eventsPart) &&
			s[key].revision != was.revision {
			d.changed = append(d.changed, key)
		}
	}
	// Namespaces first: while one is there, controllers put things into it.
	slices.SortFunc(d.added, func(a, b string) int {
		if x, y := strings.HasPrefix(a, namespacesPart), strings.HasPrefix(b, namespacesPart); x != y {
			if x {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	slices.Sort(d.changed)
	return d
}

// settled waits until a start is over, and returns what is stored then.
func (p *plane) settled(ctx context.Context) (stored, error) {
	last, err := p.store.list(ctx, p.prefix(), false)
	if err != nil {
		return nil, err
	}
	for since := time.Now(); time.Since(since) < quietFor; {
		if err := sleep(ctx, quietCheck); err != nil {
			return nil, fmt.Errorf("wait until a start is over: %w", err)
		}
		now, err := p.store.list(ctx, p.prefix(), false)
		if err != nil {
			return nil, err
		}
		if !now.since(last).empty() {
			last, since = now, time.Now()
		}
	}
	if p.served, err = p.discovery(ctx); err != nil {
		return nil, err
	}
	all, err := p.store.list(ctx, p.prefix(), true)
	if err == nil && !all.since(last).empty() {
		return p.settled(ctx)
	}
	return all, err
}

// reset puts the cluster back to how it was after its start. It works below the API server, which like every component
// learns of it as it learns of any write: by its watches. So it takes one small request for each key, and no finalizer,
// webhook or policy that a test left behind stands in the way.
func (p *plane) reset(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, resetTimeout, fmt.Errorf("not done within %s", resetTimeout))
	defer cancel()
	if err := p.failure(); err != nil {
		return err
	}
	policies, err := p.restore(ctx)
	if err != nil {
		return err
	}
	if err := p.await(ctx, p.servesAsBefore); err != nil {
		return err
	}
	if policies {
		p.resets++
		if err := p.awaitPolicies(ctx, fmt.Sprint(policyMark, p.resets)); err != nil {
			return err
		}
	}
	_, err = p.restore(ctx)
	return err
}

// restore deletes and writes keys until nothing differs for two rounds: a controller that was in the middle of
// something may write once more. It says whether admission policies were among them.
func (p *plane) restore(ctx context.Context) (policies bool, err error) {
	if err := p.store.forget(ctx, p.prefix()+eventsPart); err != nil {
		return false, err
	}
	for quiet := 0; quiet < 2; {
		now, err := p.store.list(ctx, p.prefix(), false)
		if err != nil {
			return false, err
		}
		d := now.since(p.before)
		policies = policies || slices.ContainsFunc(d.added,
			func(key string) bool { return strings.HasPrefix(key, policiesPart) })
		quiet++
		if !d.empty() {
			quiet = 0
			if err := p.apply(ctx, d); err != nil {
				return false, fmt.Errorf("put back %v: %w", d, err)
			}
		}
		if err := sleep(ctx, checkEvery); err != nil {
			return false, fmt.Errorf("put back %v: %w", d, err)
		}
	}
	return policies, nil
}

func (p *plane) apply(ctx context.Context, d difference) error {
	for _, key := range d.added {
		if err := p.store.remove(ctx, p.prefix()+key); err != nil {
			return err
		}
	}
	for _, key := range d.changed {
		was := p.before[key]
		revision, err := p.store.put(ctx, p.prefix()+key, was.value)
		if err != nil {
			return err
		}
		p.before[key] = storedValue{value: was.value, revision: revision}
	}
	return nil
}

// discovery is what the API server says that it serves.
func (p *plane) discovery(ctx context.Context) ([]byte, error) {
	return p.admin.client.Discovery().RESTClient().Get().AbsPath("/apis").
		SetHeader("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList").Do(ctx).Raw()
}

func (p *plane) servesAsBefore(ctx context.Context) error {
	now, err := p.discovery(ctx)
	if err == nil && !bytes.Equal(now, p.served) {
		err = errors.New("it serves other APIs than after its start")
	}
	return err
}

// policyMark begins the name of a policy, and of the config map whose making it refuses.
const policyMark = "testcluster-mark-"

// awaitPolicies waits until the API server has forgotten the policies that are gone. It reads all of them once in a
// while: when a new one holds, those that went before it are gone.
func (p *plane) awaitPolicies(ctx context.Context, mark string) error {
	policies := p.admin.client.AdmissionregistrationV1()
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: mark},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				ResourceNames: []string{mark},
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule: admissionv1.Rule{
						APIGroups: []string{""}, APIVersions: []string{"v1"},
						Resources: []string{"configmaps"},
					},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "false", Message: mark}},
		},
	}
	binding := sharedPolicyBinding()
	binding.Name, binding.Spec.PolicyName = mark, mark
	if _, err := policies.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := policies.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	return p.await(ctx, func(ctx context.Context) error {
		_, err := p.admin.client.CoreV1().ConfigMaps(probeNamespace).Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: mark}},
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsInvalid(err) && strings.Contains(err.Error(), mark) {
			return nil
		}
		return fmt.Errorf("a policy does not hold yet: the answer is %w", err)
	})
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
