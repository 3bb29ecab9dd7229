package clusteraccess

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PolicyName names the admission policy that keeps the accounts, and its binding.
const PolicyName = "chandler-accounts.chandler-fleet.io"

// Owned are names of objects that a holder writes itself, and not as Executor.
type Owned struct {
	Policies    []string // admission policies with their bindings
	Definitions []string // of Chandler's own kinds
	Lease       string
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{LabelManaged: "true"}}
}

// kind is one of version v1, as all of these are.
func kind(group, name string) metav1.TypeMeta {
	version := "v1"
	if group != "" {
		version = group + "/" + version
	}
	return metav1.TypeMeta{APIVersion: version, Kind: name}
}

// Objects are all that a cluster gets, in the order in which they are made, but for the policy (Policy, Binding).
func Objects(o Owned) []runtime.Object {
	no := false
	account := func(name string) *corev1.ServiceAccount {
		return &corev1.ServiceAccount{
			TypeMeta: kind("", "ServiceAccount"), ObjectMeta: meta(Namespace, name),
			AutomountServiceAccountToken: &no,
		}
	}
	subject := func(name string) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: name}}
	}
	ref := func(kind, name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	return []runtime.Object{
		&corev1.Namespace{TypeMeta: kind("", "Namespace"), ObjectMeta: meta("", Namespace)},
		account(Executor), account(Hub),
		&rbacv1.ClusterRoleBinding{
			TypeMeta: kind(rbacv1.GroupName, "ClusterRoleBinding"), ObjectMeta: meta("", Executor),
			RoleRef: ref("ClusterRole", "cluster-admin"), Subjects: subject(Executor),
		},
		&rbacv1.ClusterRole{
			TypeMeta: kind(rbacv1.GroupName, "ClusterRole"), ObjectMeta: meta("", Hub), Rules: clusterRules(o),
		},
		&rbacv1.ClusterRoleBinding{
			TypeMeta: kind(rbacv1.GroupName, "ClusterRoleBinding"), ObjectMeta: meta("", Hub),
			RoleRef: ref("ClusterRole", Hub), Subjects: subject(Hub),
		},
		&rbacv1.Role{
			TypeMeta: kind(rbacv1.GroupName, "Role"), ObjectMeta: meta(Namespace, Hub), Rules: ownRules(o),
		},
		&rbacv1.RoleBinding{
			TypeMeta: kind(rbacv1.GroupName, "RoleBinding"), ObjectMeta: meta(Namespace, Hub),
			RoleRef: ref("Role", Hub), Subjects: subject(Hub),
		},
	}
}

// clusterRules are what Hub may do in the whole cluster. To become any service account is as much as that of an
// administrator, and cannot be less: operators bring whatever rights they want, and groups name accounts to install
// with. But it does not do it by itself: what it does as Executor bears an epoch, and passes the fence. RBAC cannot
// bound the names of what is created.
func clusterRules(o Owned) []rbacv1.PolicyRule {
	const admission, extensions = admissionv1.GroupName, "apiextensions.k8s.io"
	policies := []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"}
	definitions := []string{"customresourcedefinitions"}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"impersonate"}},
		{
			APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"userextras/" + EpochExtra},
			Verbs: []string{"impersonate"},
		},
		{
			APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"},
			ResourceNames: []string{Namespace, metav1.NamespaceSystem},
		},
		{
			APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterrolebindings"}, Verbs: []string{"get"},
			ResourceNames: []string{Executor},
		},
		{APIGroups: []string{admission}, Resources: policies, Verbs: []string{"create"}},
		{
			APIGroups: []string{admission}, Resources: policies, Verbs: []string{"get", "update", "delete"},
			ResourceNames: o.Policies,
		},
		{APIGroups: []string{extensions}, Resources: definitions, Verbs: []string{"create"}},
		{
			APIGroups: []string{extensions}, Resources: definitions, Verbs: []string{"get", "update", "patch"},
			ResourceNames: o.Definitions,
		},
	}
}

// ownRules are what Hub may do in Chandler's namespace.
func ownRules(o Owned) []rbacv1.PolicyRule {
	const coordination = "coordination.k8s.io"
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"},
			ResourceNames: []string{Hub},
		},
		{
			APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"get"},
			ResourceNames: []string{Executor},
		},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}},
		{APIGroups: []string{coordination}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		{
			APIGroups: []string{coordination}, Resources: []string{"leases"}, Verbs: []string{"get", "update"},
			ResourceNames: []string{o.Lease},
		},
	}
}

// Policy refuses, in Chandler's namespace, pods that run as one of its accounts, Secrets with a lasting token of one,
// and tokens for others than Hub itself and those who may give anybody every right anyway. Who may create pods,
// Secrets or tokens there would otherwise have all rights of the cluster; the role edit is enough for each of them.
func Policy() *admissionv1.ValidatingAdmissionPolicy {
	fail, exact := admissionv1.Fail, admissionv1.Exact
	accounts := fmt.Sprintf("['%s', '%s']", Executor, Hub)
	rule := func(resource string, operations ...admissionv1.OperationType) admissionv1.NamedRuleWithOperations {
		return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: operations,
			Rule: admissionv1.Rule{
				APIGroups: []string{""}, APIVersions: []string{"*"}, Resources: []string{resource},
			},
		}}
	}
	validation := func(resource, allowed, message string) admissionv1.Validation {
		return admissionv1.Validation{
			Expression: fmt.Sprintf("request.resource.resource != '%s' || (%s)", resource, allowed),
			Message:    message,
		}
	}
	return &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta:   kind(admissionv1.GroupName, "ValidatingAdmissionPolicy"),
		ObjectMeta: meta("", PolicyName),
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{
				MatchPolicy: &exact,
				NamespaceSelector: &metav1.LabelSelector{
					MatchLabels: map[string]string{corev1.LabelMetadataName: Namespace},
				},
				ResourceRules: []admissionv1.NamedRuleWithOperations{
					rule("pods", admissionv1.Create),
					rule("secrets", admissionv1.Create, admissionv1.Update),
					rule("serviceaccounts/token", admissionv1.Create),
				},
			},
			Validations: []admissionv1.Validation{
				validation("pods",
					"!has(object.spec.serviceAccountName) || !(object.spec.serviceAccountName in "+accounts+")",
					"chandler: no pod runs as an account of Chandler"),
				validation("secrets",
					"!has(object.type) || object.type != '"+string(corev1.SecretTypeServiceAccountToken)+
						"' || !has(object.metadata.annotations) || !('"+corev1.ServiceAccountNameKey+
						"' in object.metadata.annotations) || !(object.metadata.annotations['"+corev1.ServiceAccountNameKey+
						"'] in "+accounts+")", "chandler: accounts of Chandler have no tokens that last"),
				validation("serviceaccounts", "!(request.name in "+accounts+") || (request.name == '"+Hub+
					"' && request.userInfo.username == '"+User(Hub)+
					"') || authorizer.group('"+rbacv1.GroupName+"').resource('clusterroles').name('cluster-admin')"+
					".check('bind').allowed()",
					"chandler: tokens of its accounts are for the hub, and for who may bind cluster-admin"),
			},
		},
	}
}

// Binding puts the policy into force.
func Binding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   kind(admissionv1.GroupName, "ValidatingAdmissionPolicyBinding"),
		ObjectMeta: meta("", PolicyName),
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: PolicyName, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
}
