package planreview

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// PodSecurity is the strictest level of the Pod Security Standards that the pods of a bundle meet: a namespace that
// enforces a stricter one refuses them.
type PodSecurity struct {
	Level string // restricted, baseline or privileged
	// Why says for each workload what keeps it from a stricter level.
	Why []PodSecurityReason
}

// PodSecurityReason is one rule of a stricter level that a workload breaks.
type PodSecurityReason struct {
	Workload string // Kind name
	Level    string // that has the rule
	Rule     string
	Detail   string
}

// PodSecurityOf judges the pods of rendered objects by the rules that the API server itself applies, in their newest
// version.
func PodSecurityOf(objects []Object) (PodSecurity, error) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return PodSecurity{}, errs.Wrap(errs.Internal, err, "read the Pod Security Standards")
	}
	out := PodSecurity{Level: string(psa.LevelRestricted)}
	broken := map[psa.Level]bool{}
	for _, o := range objects {
		if o.GVK.Kind != "Deployment" {
			continue
		}
		var d struct {
			Spec struct {
				Template struct {
					Metadata metav1.ObjectMeta `json:"metadata"`
					Spec     corev1.PodSpec    `json:"spec"`
				} `json:"template"`
			} `json:"spec"`
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Body, &d); err != nil {
			return out, errs.New(errs.Unprocessable, "the pods of %s cannot be read: %v", o, err)
		}
		for _, level := range []psa.Level{psa.LevelBaseline, psa.LevelRestricted} {
			results := evaluator.EvaluatePod(psa.LevelVersion{Level: level, Version: psa.LatestVersion()},
				&d.Spec.Template.Metadata, &d.Spec.Template.Spec)
			for _, r := range results {
				reason := PodSecurityReason{
					Workload: o.GVK.Kind + " " + o.Name, Level: string(level), Rule: r.ForbiddenReason,
					Detail: r.ForbiddenDetail,
				}
				known := func(k PodSecurityReason) bool {
					return k.Workload == reason.Workload && k.Rule == reason.Rule && k.Detail == reason.Detail
				}
				if !r.Allowed {
					broken[level] = true
				}
				if !r.Allowed && !slices.ContainsFunc(out.Why, known) {
					out.Why = append(out.Why, reason)
				}
			}
		}
	}
	switch {
	case broken[psa.LevelBaseline]:
		out.Level = string(psa.LevelPrivileged)
	case broken[psa.LevelRestricted]:
		out.Level = string(psa.LevelBaseline)
	}
	return out, nil
}
