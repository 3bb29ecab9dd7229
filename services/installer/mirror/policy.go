package mirror

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/render"
)

// PolicyName names the admission policy over the mirrors, and its binding.
const PolicyName = "chandler-mirror.chandler-fleet.io"

// IntentsName names the admission policy over what people create of the mirrored kinds, and its binding.
const IntentsName = "chandler-intents.chandler-fleet.io"

// PolicyNames are the names of both.
func PolicyNames() []string { return []string{PolicyName, IntentsName} }

// labelOwn is on every object of Chandler's own: a watch selects by it, and who lets go of Chandler.
const labelOwn = "chandler-fleet.io/managed"

// resources of the mirrored kinds.
func resources() []string {
	return []string{
		"clusterserviceversions", "subscriptions", "installplans", "operatorgroups", "operators",
		"catalogsources",
	}
}

// Policy refuses edits of mirrors by anybody but a user, with a sentence that says where to make them, and objects that
// others give the label of a mirror: Chandler overwrites and removes what bears it. Deleting is let in: it comes back,
// and the garbage collector must be able to. So are finalizers and owner references, which are the cluster's own
// business.
func Policy(user string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	var rules []string
	for _, r := range resources() {
		rules = append(rules, r, r+"/status")
	}
	return policy(PolicyName, rules, admissionv1.ValidatingAdmissionPolicySpec{
		MatchConditions: []admissionv1.MatchCondition{
			notUser(user),
			{Name: "mirror", Expression: labelled("object") + " || request.operation == 'UPDATE' && " +
				labelled("oldObject")},
		},
		Variables: []admissionv1.Variable{{Name: "where", Expression: whereToEdit()}},
		Validations: []admissionv1.Validation{{
			Expression: unchanged(),
			MessageExpression: "request.operation == 'CREATE' || !(" + labelled("oldObject") + ") ? " +
				"'Label " + LabelMirror +
				" marks what Chandler itself shows, and Chandler removes what bears it: leave it out' : " +
				"object.kind + ' ' + object.metadata.name + ' is kept by Chandler to show what it does; edits here " +
				"change nothing. ' + variables.where",
		}},
	})
}

// Intents refuses what anybody but a user creates of the mirrored kinds, and what he writes into the spec of one that
// is no mirror: Chandler reads none of it, so that it would be accepted and never acted on. OLMConfigs and
// OperatorConditions are read, and let in. It holds while Chandler is in charge of the cluster, and not where OLM is at
// work.
func Intents(user string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	return policy(IntentsName, resources(), admissionv1.ValidatingAdmissionPolicySpec{
		MatchConditions: []admissionv1.MatchCondition{
			notUser(user),
			{Name: "no-mirror", Expression: "!(" + labelled("object") + ") && (request.operation == 'CREATE' || !(" +
				labelled("oldObject") + ") && " +
				"object.metadata.generation != oldObject.metadata.generation)"},
		},
		Validations: []admissionv1.Validation{{
			Expression: "false",
			MessageExpression: "'Nothing would act on this ' + object.kind + ': the operators of this cluster are " +
				"kept by Chandler, which takes wishes through its own API. ' + " +
				"(object.kind in ['Subscription', 'CatalogSource', 'OperatorGroup'] ? 'Apply the same file there: " +
				"chandler apply --cluster <cluster> -f <file>' : " +
				"'Subscribe to the package there (chandler apply); Chandler then shows its ' + object.kind + ' here')",
		}},
	})
}

func notUser(user string) admissionv1.MatchCondition {
	return admissionv1.MatchCondition{Name: "not-chandler", Expression: "request.userInfo.username != '" + user + "'"}
}

// policy completes a policy over resources of OLM's group, and makes its binding.
func policy(name string, resources []string, spec admissionv1.ValidatingAdmissionPolicySpec) (
	*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding,
) {
	fail, exact := admissionv1.Fail, admissionv1.Exact
	meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{render.LabelManaged: "true", labelOwn: "true"}}
	spec.FailurePolicy = &fail
	spec.MatchConstraints = &admissionv1.MatchResources{
		MatchPolicy: &exact,
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule: admissionv1.Rule{
				APIGroups: []string{groupOLM}, APIVersions: []string{"*"},
				Resources: resources,
			},
		}}},
	}
	return &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: spec},
		&admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: meta,
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			},
		}
}

// labelled holds for an object that bears the label of a mirror.
func labelled(object string) string {
	return "has(" + object + ".metadata.labels) && '" + LabelMirror + "' in " + object + ".metadata.labels"
}

// unchanged holds for an update that leaves spec, labels and annotations. The generation stands for the spec: to
// compare that would cost more than a policy may on the largest ones.
func unchanged() string {
	same := func(field string) string {
		return "(has(object.metadata." + field + ") ? object.metadata." + field + " : {}) == " +
			"(has(oldObject.metadata." + field + ") ? oldObject.metadata." + field + " : {})"
	}
	return strings.Join([]string{
		"request.operation == 'UPDATE'", "(!has(request.subResource) || request.subResource == '')",
		"object.metadata.generation == oldObject.metadata.generation", same("labels"), same("annotations"),
	}, " && ")
}

// whereToEdit says for each kind where its content comes from.
func whereToEdit() string {
	return "object.kind == 'ClusterServiceVersion' ? " +
		"'Change the operator by its subscription: chandler apply; remove it: chandler uninstall ' + " +
		"object.metadata.name : " +
		"object.kind == 'Subscription' ? 'Change the subscription in Chandler: chandler apply, or PUT on its address " +
		"in the API' : " +
		"object.kind == 'InstallPlan' ? 'Approve or reject the plan in Chandler: chandler approve or chandler reject " +
		"' + object.metadata.name : " +
		"object.kind == 'OperatorGroup' ? 'Change the operator group in Chandler: chandler apply, or PUT on its " +
		"address in the API' : " +
		"object.kind == 'CatalogSource' ? 'Change the catalog in Chandler: chandler apply, or PUT on its address in " +
		"the API' : " +
		"'It gathers the parts of an operator: change those'"
}
