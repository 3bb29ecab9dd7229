package removedapi

import "strings"

// removed is one line of the table: kinds of a group/version that are served last by the minor version of Kubernetes 1
// before this one.
type removed struct {
	minor int
	group string // group/version
	kinds string
}

// generated is what the types of k8s.io/api say of themselves (their generated methods APILifecycleRemoved), lists left
// out. A test compares it with the types, so that it grows with them.
var generated = []removed{
	{16, "apps/v1beta1", "ControllerRevision Deployment DeploymentRollback Scale StatefulSet"},
	{16, "apps/v1beta2", "ControllerRevision DaemonSet Deployment ReplicaSet Scale StatefulSet"},
	{16, "extensions/v1beta1", "DaemonSet Deployment DeploymentRollback NetworkPolicy ReplicaSet Scale"},
	{22, "admissionregistration.k8s.io/v1beta1", "MutatingWebhookConfiguration ValidatingWebhookConfiguration"},
	{22, "authentication.k8s.io/v1beta1", "TokenReview"},
	{
		22, "authorization.k8s.io/v1beta1",
		"LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
	},
	{22, "certificates.k8s.io/v1beta1", "CertificateSigningRequest"},
	{22, "coordination.k8s.io/v1beta1", "Lease"},
	{22, "extensions/v1beta1", "Ingress"},
	{22, "networking.k8s.io/v1beta1", "Ingress IngressClass"},
	{22, "rbac.authorization.k8s.io/v1beta1", "ClusterRole ClusterRoleBinding Role RoleBinding"},
	{22, "scheduling.k8s.io/v1beta1", "PriorityClass"},
	{22, "storage.k8s.io/v1beta1", "CSIDriver CSINode StorageClass VolumeAttachment"},
	{24, "storage.k8s.io/v1alpha1", "CSIStorageCapacity VolumeAttachment"},
	{25, "batch/v1beta1", "CronJob"},
	{25, "discovery.k8s.io/v1beta1", "EndpointSlice"},
	{25, "events.k8s.io/v1beta1", "Event"},
	{25, "node.k8s.io/v1beta1", "RuntimeClass"},
	{25, "policy/v1beta1", "Eviction PodDisruptionBudget"},
	{26, "flowcontrol.apiserver.k8s.io/v1beta1", "FlowSchema PriorityLevelConfiguration"},
	{27, "storage.k8s.io/v1beta1", "CSIStorageCapacity"},
	{29, "flowcontrol.apiserver.k8s.io/v1beta2", "FlowSchema PriorityLevelConfiguration"},
	{32, "admissionregistration.k8s.io/v1alpha1", "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding"},
	{32, "authentication.k8s.io/v1alpha1", "SelfSubjectReview"},
	{32, "flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema PriorityLevelConfiguration"},
	{33, "authentication.k8s.io/v1beta1", "SelfSubjectReview"},
	{34, "admissionregistration.k8s.io/v1beta1", "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding"},
	{35, "storage.k8s.io/v1alpha1", "VolumeAttributesClass"},
	{37, "certificates.k8s.io/v1alpha1", "ClusterTrustBundle"},
	{37, "networking.k8s.io/v1beta1", "IPAddress ServiceCIDR"},
	{37, "storage.k8s.io/v1beta1", "VolumeAttributesClass"},
	{38, "admissionregistration.k8s.io/v1alpha1", "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding"},
	{38, "coordination.k8s.io/v1alpha2", "LeaseCandidate"},
	{38, "resource.k8s.io/v1beta1", "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice"},
	{39, "coordination.k8s.io/v1beta1", "LeaseCandidate"},
	{39, "resource.k8s.io/v1alpha3", "DeviceTaintRule"},
	{39, "resource.k8s.io/v1beta2", "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice"},
	{40, "admissionregistration.k8s.io/v1beta1", "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding"},
	{40, "certificates.k8s.io/v1beta1", "ClusterTrustBundle PodCertificateRequest"},
	{40, "storagemigration.k8s.io/v1beta1", "StorageVersionMigration"},
	{42, "resource.k8s.io/v1alpha3", "ResourcePoolStatusRequest"},
	{42, "resource.k8s.io/v1beta2", "DeviceTaintRule"},
	{43, "lifecycle.k8s.io/v1alpha1", "Eviction EvictionRequest"},
	{43, "scheduling.k8s.io/v1beta1", "PodGroup Workload"},
}

// former is what k8s.io/api no longer has, or never had, and bundles of former years bring: from Kubernetes'
// "Deprecated API Migration Guide" (kubernetes.io/docs/reference/using-api/deprecation-guide).
var former = []removed{
	{16, "extensions/v1beta1", "PodSecurityPolicy"},
	{22, "apiextensions.k8s.io/v1beta1", "CustomResourceDefinition"},
	{22, "apiregistration.k8s.io/v1beta1", "APIService"},
	{25, "autoscaling/v2beta1", "HorizontalPodAutoscaler"},
	{25, "policy/v1beta1", "PodSecurityPolicy"},
	{26, "autoscaling/v2beta2", "HorizontalPodAutoscaler"},
}

var removals = table(generated, former)

func table(lists ...[]removed) map[Kind]Version {
	out := map[Kind]Version{}
	for _, list := range lists {
		for _, r := range list {
			group, version, _ := strings.Cut(r.group, "/")
			for kind := range strings.FieldsSeq(r.kinds) {
				out[Kind{group, version, kind}] = Version{1, r.minor}
			}
		}
	}
	return out
}
