package executor

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/group"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/clusterconfig"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/facts"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/uninstall"
	"github.com/chandler-fleet/chandler/services/installer/executor/watch"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

// watchedKinds are the kinds of which a change is a hint to reconcile, the most urgent first. Most are watched only
// once something is wanted of the cluster: one that only waits costs little.
func watchedKinds() []watch.Kind {
	managed := func(gvk schema.GroupVersionKind) watch.Kind {
		k := watch.Kind{
			GVK: gvk, Resource: kube.Resource(gvk).Resource, Selector: kube.SelectManaged,
			Owner: render.LabelOwnerNamespace,
		}
		if !kube.BuiltIn(gvk.Group) {
			k.CRD = k.Resource + "." + gvk.Group
		}
		return k
	}
	deployments := managed(kube.GVKDeployment)
	deployments.Status = true
	conditions := managed(facts.GVKCondition)
	conditions.Status = true
	out := []watch.Kind{
		managed(kube.GVKInstalledOperator), deployments, managed(kube.GVKPolicy), managed(kube.GVKPolicyBinding),
		{GVK: kube.GVKCRD, Resource: kube.Resource(kube.GVKCRD).Resource, Status: true},
		{
			GVK: kube.GVKNamespace, Resource: kube.Resource(kube.GVKNamespace).Resource, Labels: true,
			Annotations: kube.LabelNamespaceLabels,
		},
		conditions,
		{GVK: clusterconfig.GVKConfigMap, Resource: "configmaps", Namespace: kube.SystemNamespace},
		{
			GVK: clusterconfig.GVKSecret, Resource: "secrets", Namespace: kube.SystemNamespace,
			Selector: clusterconfig.LabelPullSecret + "=true",
		},
		// the values in force stand there
		{GVK: clusterconfig.GVKProxy, Resource: "proxies", CRD: "proxies.config.openshift.io", Status: true},
	}
	for _, gvk := range uninstall.OwnedKinds() {
		if gvk != kube.GVKDeployment {
			out = append(out, managed(gvk))
		}
	}
	out = watch.Standby(append(out, mirrorKinds()...), kube.GVKInstalledOperator, kube.GVKPolicy, kube.GVKPolicyBinding,
		kube.GVKCRD, kube.GVKNamespace)
	return append(out, clusterconfig.TokenKinds()...)
}

// changed wakes the namespaces that a change concerns.
func (s *session) changed(c watch.Change) {
	s.client.Heard(c.GVK, c.At)
	if s.mirrorChanged(c) || s.tokensChanged(c) {
		return
	}
	switch c.GVK {
	case kube.GVKCRD:
		s.definitionChanged(c)
	case kube.GVKPolicy, kube.GVKPolicyBinding:
		s.policyChanged(c)
	case kube.GVKNamespace:
		s.wake(c.Name)
		s.namespaceChanged(c.Name)
		if s.mirrors.Copying() || c.Name == mirror.GlobalCopies {
			s.wakeKnown()
		}
	case clusterconfig.GVKProxy:
		s.configChanged()
	default:
		s.objectChanged(c)
	}
}

func (s *session) objectChanged(c watch.Change) {
	if c.Namespace == kube.SystemNamespace && (c.GVK == clusterconfig.GVKSecret ||
		c.Name == clusterconfig.ProxyConfigMap) {
		s.configChanged()
		return
	}
	namespace := cmp.Or(c.Owner, c.Namespace)
	foreign := c.Moved && s.trail.Seen(namespace, c)
	if foreign && (c.GVK == kube.GVKServiceAccount || c.GVK == clusterconfig.GVKSecret) {
		s.configCache.ForgetNamespace(c.Namespace)
	}
	s.mirrors.ConditionTouched(c)
	if !foreign && c.Moved && c.GVK != kube.GVKDeployment && c.GVK != facts.GVKCondition {
		return // our own write
	}
	switch c.GVK {
	case facts.GVKCondition, kube.GVKServiceAccount:
		s.facts.ForgetNamespace(namespace)
	case certs.GVKSecret:
		s.certificates.Forget(namespace)
	}
	s.wakeOnes(s.groups.Keeper.Touched(c.GVK, c.Namespace, c.Name, c.Mark))
	s.wake(namespace)
}

// configChanged has every operator reconciled with what the cluster tells all of them.
func (s *session) configChanged() {
	s.configCache.Forget()
	for _, p := range s.inbox.All() {
		s.queue.Add(p.Scope.Namespace)
	}
}

func (s *session) definitionChanged(c watch.Change) {
	if c.Gone && slices.Contains(kube.OwnDefinitions(), c.Name) {
		s.ownTouched()
	}
	if c.Gone && s.mirrors.DefinitionGone(c.Name) {
		s.wakeKnown()
	}
	if !c.Moved {
		s.signals.Notify(c.Ref()) // its status, which a step may wait for
	}
	users := s.facts.CRDChanged(c.Name, c.Version)
	for _, namespace := range users {
		if c.Moved {
			s.trail.Seen(namespace, c)
		}
		s.wake(namespace)
	}
	s.wakeOnes(s.logs.Recheck())
	s.wakeOnes(s.waiting.of(c.Name))
}

// mirrorKinds are watched beside what Chandler manages: the mirrors, the OLMConfig, and OLM itself.
func mirrorKinds() []watch.Kind {
	kind := func(gvk schema.GroupVersionKind, selector, owner string) watch.Kind {
		k := watch.Kind{GVK: gvk, Resource: kube.Resource(gvk).Resource, Selector: selector, Owner: owner}
		k.CRD = k.Resource + "." + gvk.Group
		return k
	}
	out := []watch.Kind{kind(mirror.GVKOLMConfig, "", "")}
	for _, gvk := range mirror.Kinds() {
		out = append(out, kind(gvk, mirror.LabelMirror, mirror.LabelMirror))
	}
	return append(out, watch.Kind{
		GVK: kube.GVKDeployment, Resource: kube.Resource(kube.GVKDeployment).Resource,
		Selector: mirror.OLMSelector(),
	})
}

// mirrorChanged takes a change of what mirrorKinds name; false where it concerns something else.
func (s *session) mirrorChanged(c watch.Change) bool {
	switch {
	case c.GVK == kube.GVKDeployment && slices.Contains(mirror.OLMDeployments(), c.Name):
		s.olm.Hint()
		s.wakeKnown()
	case c.GVK == mirror.GVKOLMConfig:
		if c.Moved {
			s.mirrors.ConfigChanged()
			s.wakeKnown()
		}
	case slices.Contains(mirror.Kinds(), c.GVK):
		if home, foreign := s.mirrors.Changed(c); foreign {
			s.wake(home)
		}
	default:
		return false
	}
	return true
}

// mirrorsListed has mirrors written again that are not there though they were written.
func (s *session) mirrorsListed(gvk schema.GroupVersionKind) {
	there := func(namespace, name string) bool {
		found, _ := s.watcher.There(gvk, namespace, name)
		return found
	}
	if s.mirrors.Listed(gvk, there) {
		s.wakeKnown()
	}
}

// policyChanged has an admission policy of ours put right.
func (s *session) policyChanged(c watch.Change) {
	if slices.Contains(kube.Policies(), c.Name) {
		s.ownTouched()
	}
	if c.Gone && s.mirrors.PolicyGone(c.Name) {
		s.wakeKnown()
	}
}

// wake has a namespace reconciled, if there is anything to do in it.
func (s *session) wake(namespace string) {
	if _, _, known := s.inbox.Get(namespace); known {
		s.queue.Add(namespace)
	}
}

func (s *session) wakeOnes(namespaces []string) {
	for _, ns := range namespaces {
		s.wake(ns)
	}
}

// namespaceChanged wakes the groups whose targets a namespace may be (R-OG §7.1).
func (s *session) namespaceChanged(name string) {
	for _, p := range s.inbox.All() {
		if p.OperatorGroups == 1 && group.Follows(p.OperatorGroup.Spec, name) {
			s.wake(p.Scope.Namespace)
		}
	}
}

// wakeKnown has every namespace reconciled in which there is anything to do.
func (s *session) wakeKnown() {
	for _, p := range s.inbox.All() {
		s.queue.Add(p.Scope.Namespace)
	}
}

// tokensChanged takes a change of what clusterconfig.TokenKinds name; false where it concerns something else.
func (s *session) tokensChanged(c watch.Change) bool {
	if !clusterconfig.IsTokenKind(c.GVK) {
		return false
	}
	select {
	case s.tokens <- struct{}{}:
	default: // it is being found out already
	}
	return true
}
