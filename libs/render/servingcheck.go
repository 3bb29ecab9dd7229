package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// CheckServing is R-CSV-45 and R-CSV-46 beside what makes a webhook or an owned API no webhook or API at all:
// nil, or an errs.Invalid with the first rule that a description breaks.
func CheckServing(csv bundle.CSV) error {
	webhooks, err := csv.WebhookDescriptions()
	if err != nil {
		return err
	}
	return checkServing(csv, webhooks)
}

func checkServing(csv bundle.CSV, webhooks []bundle.WebhookDescription) error {
	refuse := func(place, rule, format string, args ...any) error {
		return errs.New(errs.Invalid, csv.Name+": "+format, args...).At(place, rule)
	}
	names := map[string]bool{}
	for i, w := range webhooks {
		place := fmt.Sprintf("/spec/webhookdefinitions/%d", i)
		switch {
		case names[w.GenerateName]:
			return refuse(place+"/generateName", "R-CSV-45", "repeated webhook description name %s; each needs its own",
				w.GenerateName)
		case !hasDeployment(csv, w.DeploymentName):
			return refuse(place+"/deploymentName", "R-CSV-42",
				"webhook %s is served by deployment %q, which the install strategy does not have", w.GenerateName,
				w.DeploymentName)
		}
		names[w.GenerateName] = true
		var err error
		switch w.Type {
		case bundle.ValidatingWebhook, bundle.MutatingWebhook:
			err = checkAdmission(w, place, refuse)
		case bundle.ConversionWebhook:
			err = checkConversion(csv, w, place, refuse)
		default:
			err = refuse(place+"/type", "R-CSV-42", "webhook %s has type %q, want %s, %s or %s", w.GenerateName, w.Type,
				bundle.ValidatingWebhook, bundle.MutatingWebhook, bundle.ConversionWebhook)
		}
		if err != nil {
			return err
		}
	}
	for i, a := range csv.Spec.APIServices.Owned {
		if !hasDeployment(csv, a.DeploymentName) {
			return refuse(fmt.Sprintf("/spec/apiservicedefinitions/owned/%d/deploymentName", i), "R-CSV-40",
				"API %s of %s/%s is served by deployment %q, which the install strategy does not have", a.Kind, a.Group,
				a.Version, a.DeploymentName)
		}
	}
	return nil
}

type refusal func(place, rule, format string, args ...any) error

// checkAdmission refuses webhooks that could block their own removal.
func checkAdmission(w bundle.WebhookDescription, place string, refuse refusal) error {
	if strings.Count(w.GenerateName, ".") < 2 {
		return refuse(place+"/generateName", "R-CSV-42",
			"webhook name %q must be a domain of at least three segments, such as vgauge.sea.test", w.GenerateName)
	}
	var rules []admissionv1.RuleWithOperations
	if len(w.Rules) > 0 {
		if err := json.Unmarshal(w.Rules, &rules); err != nil {
			return refuse(place+"/rules", "R-CSV-42", "webhook %s: %v", w.GenerateName, err)
		}
	}
	for i, r := range rules {
		at := fmt.Sprintf("%s/rules/%d", place, i)
		switch {
		case slices.Contains(r.APIGroups, "*"):
			return refuse(at+"/apiGroups", "R-CSV-45", "webhook %s: webhook rules cannot include all groups",
				w.GenerateName)
		case slices.Contains(r.APIGroups, gvkCSV.Group):
			return refuse(at+"/apiGroups", "R-CSV-45", "webhook %s: webhook rules cannot include the OLM group %s",
				w.GenerateName, gvkCSV.Group)
		case slices.ContainsFunc(r.APIGroups, bundle.Ours):
			return refuse(at+"/apiGroups", bundle.RuleReserved,
				"webhook %s: webhook rules cannot include groups of OLM or Chandler: what they remember in a cluster passes "+
					"no webhook", w.GenerateName)
		case slices.Contains(r.APIGroups, GVKValidatingWebhook.Group) &&
			slices.ContainsFunc(r.Resources, isWebhookConfiguration):
			return refuse(at+"/resources", "R-CSV-45",
				"webhook %s: webhook rules cannot include MutatingWebhookConfiguration or "+
					"ValidatingWebhookConfiguration resources", w.GenerateName)
		}
	}
	return nil
}

func isWebhookConfiguration(resource string) bool {
	resource, _, _ = strings.Cut(strings.ToLower(resource), "/")
	return slices.Contains([]string{"*", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"}, resource)
}

// checkConversion is R-CSV-46: CRDs are the whole cluster's, so their converter must be, too. Of two webhooks that
// convert one CRD the last one does, as in OLM; one that names no CRD converts nothing.
func checkConversion(csv bundle.CSV, w bundle.WebhookDescription, place string, refuse refusal) error {
	only := slices.ContainsFunc(csv.Spec.InstallModes, func(m bundle.InstallMode) bool {
		return m.Type == ModeAll &&
			m.Supported
	})
	for _, m := range csv.Spec.InstallModes {
		only = only && m.Supported == (m.Type == ModeAll)
	}
	if !only {
		return refuse("/spec/installModes", "R-CSV-46",
			"webhook %s converts CRDs, so %s must be the one supported install mode", w.GenerateName, ModeAll)
	}
	for i, crd := range w.ConversionCRDs {
		at := fmt.Sprintf("%s/conversionCRDs/%d", place, i)
		if !slices.ContainsFunc(csv.Spec.CRDs.Owned, func(d bundle.CRDDescription) bool { return d.Name == crd }) {
			return refuse(at, "R-CSV-46", "webhook %s converts %s, which is no CRD that the operator owns",
				w.GenerateName, crd)
		}
	}
	return nil
}

func hasDeployment(csv bundle.CSV, name string) bool {
	return slices.ContainsFunc(csv.Spec.Install.Spec.Deployments,
		func(d bundle.Deployment) bool { return d.Name == name })
}
