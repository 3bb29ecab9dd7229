package executor

import (
	"context"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/cluster"
)

const (
	// factsFor is how long a CRD of somebody else that is as required is not asked for again.
	factsFor = 30 * time.Second
	// managedFactsFor is the same for CRDs that Chandler wrote: a watch says when one changes.
	managedFactsFor = time.Hour

	failForward = "TechPreviewUnsafeFailForward"
)

// Kinds that requirements are about.
var (
	gvkCRD     = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	gvkAccount = schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}
)

// observe takes everything that decides the next phase of a ClusterServiceVersion.
func (w *work) observe(ctx context.Context, m *member, deployments []appsv1.Deployment) (csv.Observation, error) {
	targets := w.group().Targets
	if len(targets) == 0 {
		targets = []string{""}
	}
	_, known := m.object.GetAnnotations()[render.AnnotationTargetNamespaces]
	o := csv.Observation{
		Now: w.cfg.Now(), OperatorGroups: w.plans.OperatorGroups, TargetsKnown: known,
		FailForward:   w.plans.OperatorGroup.Spec.UpgradeStrategy == failForward,
		DuplicateMode: render.DuplicateMode(m.csv.Spec.InstallModes),
		Components:    csv.Observe(m.csv.Spec.Install.Spec.Deployments, w.ownDeployments(m, deployments)),
		Predecessor:   w.neighbour(m.csv.Spec.Replaces),
		Successor:     w.successor(m),
		OwnerConflict: w.ownerConflict(m),
	}
	if err := render.CheckInstallModes(m.csv.Spec.InstallModes, w.ns, targets); err != nil {
		o.ModesError = err.Error()
	}
	if s := m.csv.Spec.Install.Strategy; s != bundle.StrategyDeployment {
		o.StrategyError = "install strategy " + s + " is unknown"
	}
	if !needsRequirements(m.status.Phase) {
		o.Requirements = m.status.RequirementStatus
		return o, nil
	}
	facts, err := w.requirements(ctx, m)
	if err != nil {
		return o, err
	}
	o.Requirements = csv.Check(m.csv.Spec, facts)
	w.setWaiting(w.ns, len(csv.Unmet(o.Requirements)) > 0)
	if len(csv.Unmet(o.Requirements)) > 0 {
		w.soon(gatePause) // what is missing may be nobody's whom we watch
	}
	return o, nil
}

// needsRequirements reports the phases whose rows ask for them (R-CSV §6.3).
func needsRequirements(p csv.Phase) bool {
	return p == csv.PhasePending || p == csv.PhaseSucceeded || p == csv.PhaseFailed
}

// ownDeployments selects the Deployments that belong to the ClusterServiceVersion and, while a plan is to write
// others, are those.
func (w *work) ownDeployments(m *member, deployments []appsv1.Deployment) []appsv1.Deployment {
	return slices.DeleteFunc(slices.Clone(deployments), func(d appsv1.Deployment) bool {
		if d.Labels[render.LabelOwner] != render.OwnerLabelValue(m.name()) || d.DeletionTimestamp != nil {
			return true
		}
		want, planned := w.wanted[m.name()][d.Name]
		return planned && want != d.Labels[render.LabelDeploymentHash]
	})
}

func (w *work) neighbour(name string) *csv.Neighbour {
	if name == "" {
		return nil
	}
	for _, m := range w.members {
		if m.name() == name {
			return &csv.Neighbour{Name: name, Phase: m.status.Phase}
		}
	}
	return nil
}

func (w *work) successor(m *member) *csv.Neighbour {
	for _, other := range w.members {
		if other.csv.Spec.Replaces == m.name() {
			return &csv.Neighbour{Name: other.name(), Phase: other.status.Phase}
		}
	}
	return nil
}

// chain reports whether one of the two follows the other, directly or through others.
func (w *work) chain(a, b *member) bool {
	return w.follows(a, b) || w.follows(b, a)
}

func (w *work) follows(a, b *member) bool {
	for range w.members {
		if a.csv.Spec.Replaces == b.name() {
			return true
		}
		i := slices.IndexFunc(w.members, func(m *member) bool { return m.name() == a.csv.Spec.Replaces })
		if i < 0 {
			return false
		}
		a = w.members[i]
	}
	return false
}

// ownerConflict names another member, outside the chain of replacements, that owns one of the same APIs.
func (w *work) ownerConflict(m *member) string {
	for _, other := range w.members {
		if other == m || w.chain(m, other) {
			continue
		}
		for _, d := range m.csv.Spec.CRDs.Owned {
			if slices.ContainsFunc(other.csv.Spec.CRDs.Owned, func(e bundle.CRDDescription) bool { return e.Name == d.Name }) {
				return "owner conflict: " + other.name() + " owns " + d.Name + ", too"
			}
		}
	}
	return ""
}

// requirements asks the cluster for what the ClusterServiceVersion requires (R-CSV §6.4).
func (w *work) requirements(ctx context.Context, m *member) (csv.Facts, error) {
	f := csv.Facts{KubernetesVersion: w.version, CRDs: map[string]csv.CRDFact{}, Accounts: map[string]csv.AccountFact{}, NativeAPIs: map[bundle.GVK]bool{}}
	for _, d := range append(slices.Clone(m.csv.Spec.CRDs.Owned), m.csv.Spec.CRDs.Required...) {
		fact, ok, err := w.facts.crd(ctx, d)
		if err != nil {
			return f, err
		}
		if ok {
			f.CRDs[d.Name] = fact
		}
	}
	for _, a := range m.csv.Spec.NativeAPIs {
		served, err := w.client.Serves(schema.GroupVersionKind{Group: a.Group, Version: a.Version, Kind: a.Kind})
		if err != nil {
			return f, err
		}
		f.NativeAPIs[a] = served
	}
	if len(csv.Accounts(m.csv.Spec)) == 0 {
		return f, nil
	}
	accounts, err := w.client.List(ctx, gvkAccount, w.ns, "")
	if err != nil {
		return f, err
	}
	for _, a := range accounts {
		fact := csv.AccountFact{UID: string(a.GetUID())}
		for _, owner := range a.GetOwnerReferences() {
			if owner.Kind != cluster.GVKCSV.Kind {
				continue
			}
			if fact.ForeignOwner = w.foreign(m, owner.Name); fact.ForeignOwner == "" {
				break // one of the chain is enough
			}
		}
		f.Accounts[a.GetName()] = fact
	}
	return f, nil
}

// foreign returns name unless it is the member or of its chain. A name that is gone is nobody's.
func (w *work) foreign(m *member, name string) string {
	i := slices.IndexFunc(w.members, func(o *member) bool { return o.name() == name })
	if i < 0 || w.members[i] == m || w.chain(m, w.members[i]) {
		return ""
	}
	return name
}

// facts remembers CRDs that are as required, since they are large and rarely change.
type facts struct {
	client *cluster.Epoch
	now    func() time.Time
	mu     sync.Mutex
	crds   map[string]crdNote
}

type crdNote struct {
	csv.CRDFact
	until time.Time
}

func newFacts(client *cluster.Epoch, now func() time.Time) *facts {
	return &facts{client: client, now: now, crds: map[string]crdNote{}}
}

func (f *facts) forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.crds, name)
}

func (f *facts) crd(ctx context.Context, d bundle.CRDDescription) (csv.CRDFact, bool, error) {
	f.mu.Lock()
	note, ok := f.crds[d.Name]
	f.mu.Unlock()
	if ok && f.now().Before(note.until) && slices.Contains(note.Served, d.Version) {
		return note.CRDFact, true, nil
	}
	o, err := f.client.Get(ctx, gvkCRD, "", d.Name)
	if err != nil || o == nil {
		return csv.CRDFact{}, false, err
	}
	fact := csv.CRDFact{UID: string(o.GetUID())}
	fact.Established, fact.Served = cluster.Established(o)
	if fact.Established && slices.Contains(fact.Served, d.Version) {
		keep := factsFor
		if o.GetLabels()[cluster.LabelManaged] == "true" {
			keep = managedFactsFor
		}
		f.mu.Lock()
		f.crds[d.Name] = crdNote{CRDFact: fact, until: f.now().Add(keep)}
		f.mu.Unlock()
	}
	return fact, true, nil
}
