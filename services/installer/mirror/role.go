package mirror

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/render"
)

// ViewRole lets whoever may view a namespace read its mirrors (R-NAD-2): Kubernetes' role view gathers it by its label,
// and edit and admin gather view. Rights to write are nobody's: what is written there is not obeyed.
func ViewRole() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: PolicyName, Labels: map[string]string{
			render.LabelManaged: "true", "rbac.authorization.k8s.io/aggregate-to-view": "true",
		}},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{groupOLM}, Resources: resources(),
			Verbs: []string{"get", "list", "watch"},
		}},
	}
}
