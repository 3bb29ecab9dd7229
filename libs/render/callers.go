package render

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// Labels of a webhook configuration (R-CSV-41).
const (
	LabelWebhookName = "olm.webhook-description-generate-name"
	LabelWebhookHash = "olm.webhook-description-hash"
)

// Kinds that make the API server call an operator. A CRD with a conversion webhook is a third way.
var (
	GVKAPIService        = schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}
	GVKValidatingWebhook = schema.GroupVersionKind{
		Group: "admissionregistration.k8s.io", Version: "v1",
		Kind: "ValidatingWebhookConfiguration",
	}
	GVKMutatingWebhook = schema.GroupVersionKind{
		Group: "admissionregistration.k8s.io", Version: "v1",
		Kind: "MutatingWebhookConfiguration",
	}
)

const (
	groupPriority   = int64(2000)
	versionPriority = int64(15)
)

// Calls reports whether an object makes the API server call an operator, other than to convert.
func Calls(gvk schema.GroupVersionKind) bool {
	return gvk == GVKAPIService || gvk == GVKValidatingWebhook || gvk == GVKMutatingWebhook
}

// callers renders the API services and webhook configurations (R-CSV-40, R-CSV-42). They come after the
// Deployments, which must be ready to answer. The CA and the namespaces that a webhook is asked about
// (R-CSV-44) belong to the cluster and are not here.
func (r *renderer) callers() error {
	for _, a := range uniqueAPIs(r.csv.Spec.APIServices.Owned) {
		r.addOwned(GVKAPIService, "", a.Version+"."+a.Group, map[string]any{"spec": map[string]any{
			"group": a.Group, "version": a.Version, "groupPriorityMinimum": groupPriority,
			"versionPriority": versionPriority, "service": map[string]any{
				"namespace": r.in.Namespace, "name": ServiceName(a.DeploymentName), "port": int64(a.Port()),
			},
		}})
	}
	for i, w := range r.webhooks {
		if w.Type == bundle.ConversionWebhook {
			continue
		}
		if err := r.webhook(w); err != nil {
			return errs.New(errs.Invalid, "%s: webhook %s: %v", r.csv.Name, w.GenerateName, err).
				At(fmt.Sprintf("/spec/webhookdefinitions/%d", i), "R-CSV-42")
		}
	}
	return nil
}

// uniqueAPIs returns one entry for each group and version: an API service holds all kinds of one.
func uniqueAPIs(owned []bundle.APIDescription) []bundle.APIDescription {
	var out []bundle.APIDescription
	for _, a := range owned {
		if !slices.ContainsFunc(out, func(b bundle.APIDescription) bool {
			return b.Group == a.Group &&
				b.Version == a.Version
		}) {
			out = append(out, a)
		}
	}
	return out
}

// webhook renders one configuration with one webhook. Its name stays the same from version to version, so
// that an upgrade changes it in place and leaves no moment without it; OLM draws a new one each time.
func (r *renderer) webhook(w bundle.WebhookDescription) error {
	gvk := GVKValidatingWebhook
	hook := map[string]any{"name": w.GenerateName, "clientConfig": r.clientConfig(w)}
	if w.Type == bundle.MutatingWebhook {
		gvk = GVKMutatingWebhook
		setText(hook, "reinvocationPolicy", w.ReinvocationPolicy)
	}
	for key, raw := range map[string]json.RawMessage{"rules": w.Rules, "objectSelector": w.ObjectSelector} {
		if err := setRaw(hook, key, raw); err != nil {
			return err
		}
	}
	setText(hook, "failurePolicy", w.FailurePolicy)
	setText(hook, "matchPolicy", w.MatchPolicy)
	setText(hook, "sideEffects", w.SideEffects)
	if w.TimeoutSeconds != nil {
		hook["timeoutSeconds"] = int64(*w.TimeoutSeconds)
	}
	hook["admissionReviewVersions"] = stringList(w.AdmissionReviewVersions)
	raw, err := json.Marshal(w)
	if err != nil {
		return err
	}
	body := map[string]any{"webhooks": []any{hook}}
	set(child(body, "metadata"), "labels", map[string]string{
		LabelWebhookName: labelValue(w.GenerateName), LabelWebhookHash: hash(specHashLength, r.csv.Name, string(raw)),
	})
	r.addOwned(gvk, "", cutName(w.GenerateName, hash(nameHashLength, r.in.Namespace, w.DeploymentName, w.Type,
		w.GenerateName)), body)
	return nil
}

// clientConfig says where a webhook is called.
func (r *renderer) clientConfig(w bundle.WebhookDescription) map[string]any {
	service := map[string]any{
		"namespace": r.in.Namespace, "name": ServiceName(w.DeploymentName),
		"port": int64(w.Port()),
	}
	setText(service, "path", w.WebhookPath)
	return map[string]any{"service": service}
}

// convert lets the operator convert the objects of a CRD from version to version (R-CSV-46), from the moment
// when its new form is there: without it, versions would be taken for each other.
func (r *renderer) convert(crd string, body map[string]any) error {
	for _, w := range r.webhooks {
		if w.Type != bundle.ConversionWebhook || !slices.Contains(w.ConversionCRDs, crd) {
			continue
		}
		spec := child(body, "spec")
		if spec["preserveUnknownFields"] == true {
			return errs.New(errs.Invalid,
				"%s: webhook %s converts %s, whose spec.preserveUnknownFields must be false for that", r.csv.Name,
				w.GenerateName, crd).
				At("/spec/preserveUnknownFields", "R-CSV-46")
		}
		if w.WebhookPath == "" {
			w.WebhookPath = "/"
		}
		spec["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"clientConfig": r.clientConfig(w), "conversionReviewVersions": stringList(w.AdmissionReviewVersions),
		}}
	}
	return nil
}

// checkConverted refuses a conversion webhook for a CRD that the bundle does not bring.
func (r *renderer) checkConverted() error {
	for i, w := range r.webhooks {
		for _, crd := range w.ConversionCRDs {
			if w.Type == bundle.ConversionWebhook && !slices.ContainsFunc(
				r.out, func(o Object) bool { return o.GVK == gvkCRD && o.Name == crd }) {
				return errs.New(errs.Invalid, "%s: webhook %s converts %s, a CRD that the bundle does not bring",
					r.csv.Name, w.GenerateName, crd).
					At(fmt.Sprintf("/spec/webhookdefinitions/%d/conversionCRDs", i), "R-CSV-46")
			}
		}
	}
	return nil
}

func setText(m map[string]any, key, value string) {
	if value != "" {
		m[key] = value
	}
}

// setRaw puts a value as it was written; an absent one stays absent.
func setRaw(m map[string]any, key string, raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	var v any
	if err := utiljson.Unmarshal(raw, &v); err != nil {
		return err
	}
	prune(v)
	if v != nil {
		m[key] = v
	}
	return nil
}
