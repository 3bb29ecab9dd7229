package mirror

import (
	"cmp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
)

// CSVDefinition is the name of the definition without which OLM does nothing.
const CSVDefinition = "clusterserviceversions." + groupOLM

// OLMDeployments are the names of the Deployments that are OLM; each bears its name in the label app, too.
func OLMDeployments() []string { return []string{"catalog-operator", "olm-operator"} }

// OLMSelector selects them by their labels.
func OLMSelector() string { return "app in (" + strings.Join(OLMDeployments(), ",") + ")" }

// olmPrograms are what runs in them, whatever they are named.
func olmPrograms() []string { return []string{"/bin/olm", "/bin/catalog"} }

// defaultAccount is the service account of pods that name none.
const defaultAccount = "default"

// OLMCandidate is a Deployment that looks as if it were OLM. Anybody who may make a Deployment can make one that does;
// what its account may do decides.
type OLMCandidate struct {
	Namespace, Name string
	Account         string // name of its service account
}

// String says what was found where, for people.
func (c OLMCandidate) String() string {
	return c.Namespace + "/" + c.Name + ", whose service account " + c.Account +
		" may write the ClusterServiceVersions of all namespaces"
}

// OLMCandidates are those among Deployments, sorted, each once: by name and label, or by the program that they run. One
// that is scaled to nothing or on its way out does not count; one whose pods are not ready does: it comes back by
// itself.
func OLMCandidates(list []appsv1.Deployment) []OLMCandidate {
	var out []OLMCandidate
	for _, d := range list {
		wanted := d.Spec.Replicas == nil || *d.Spec.Replicas > 0
		looks := slices.Contains(OLMDeployments(), d.Name) && d.Labels["app"] == d.Name || runsOLM(d)
		if !wanted || !looks || d.DeletionTimestamp != nil {
			continue
		}
		out = append(out, OLMCandidate{
			d.Namespace, d.Name,
			cmp.Or(d.Spec.Template.Spec.ServiceAccountName, defaultAccount),
		})
	}
	slices.SortFunc(out, func(a, b OLMCandidate) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return slices.Compact(out)
}

func runsOLM(d appsv1.Deployment) bool {
	for _, c := range d.Spec.Template.Spec.Containers {
		if line := slices.Concat(c.Command, c.Args); len(line) > 0 && slices.Contains(olmPrograms(), line[0]) {
			return true
		}
	}
	return false
}
