package certs

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// LabelConverted is on a CRD whose objects an operator of the namespace that is its value converts.
const LabelConverted = "chandler-fleet.io/converted-by"

const byWebhook = "Webhook"

// Converted are the CRDs whose objects an operator converts.
func Converted(c bundle.CSV) []string {
	webhooks, err := c.WebhookDescriptions()
	if err != nil {
		return nil
	}
	var out []string
	for _, h := range webhooks {
		if h.Type == bundle.ConversionWebhook {
			out = append(out, h.ConversionCRDs...)
		}
	}
	return out
}

// InstalledBy reports a CRD that an operator, as namespace/csv, is noted on.
func InstalledBy(crd *unstructured.Unstructured, owner string) bool {
	for key, value := range crd.GetAnnotations() {
		if strings.HasPrefix(key, render.AnnotationInstalledAlongside) && value == owner {
			return true
		}
	}
	return false
}

// Former is the form that a CRD has in the cluster. A new form keeps of it what Keep says.
type Former struct {
	definition Definition
	conversion map[string]any
}

// FormerOf reads a CRD of the cluster. False is one of which nothing is to be kept: nobody has written it yet; or how
// it is converted is somebody else's: the API server is to refuse the write as a conflict, now and not later.
func FormerOf(crd *unstructured.Unstructured, ns string) (Former, bool, error) {
	if crd == nil {
		return Former{}, false, nil
	}
	d, err := definitionOf(crd.Object)
	if err != nil {
		return Former{}, false, fmt.Errorf("CustomResourceDefinition %s: %w", crd.GetName(), err)
	}
	f := Former{definition: d}
	if f.conversion, _, err = unstructured.NestedMap(crd.Object, "spec", "conversion"); err != nil {
		return f, false, errs.Wrap(errs.Invalid, err, "CustomResourceDefinition %s", crd.GetName())
	}
	if d.Webhook {
		return f, crd.GetLabels()[LabelConverted] == ns, nil
	}
	foreign := crd.GetLabels()[kube.LabelManaged] != "true" &&
		slices.ContainsFunc(crd.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
			return m.FieldsV1 != nil && strings.Contains(m.FieldsV1.GetRawString(), `"f:conversion":`)
		})
	return f, !foreign, nil
}

// ByWebhook reports a form in which an operator converts.
func (f Former) ByWebhook() bool { return f.definition.Webhook }

// Keep leaves in the new form of the CRD what is to stay of the former one.
func (f Former) Keep(body *unstructured.Unstructured) error {
	next, err := definitionOf(body.Object)
	if err != nil {
		return err
	}
	kept := Keep(f.definition, next)
	if kept.Conversion {
		if f.definition.Webhook {
			if err := unstructured.SetNestedMap(body.Object, f.conversion, "spec", "conversion"); err != nil {
				return err
			}
		} else {
			unstructured.RemoveNestedField(body.Object, "spec", "conversion")
		}
	}
	if !kept.Stored {
		return nil
	}
	versions, err := versionsOf(body.Object)
	if err != nil {
		return err
	}
	list := make([]any, len(versions))
	for i, v := range versions {
		v["storage"] = v["name"] == f.definition.Stored
		list[i] = v
	}
	return unstructured.SetNestedSlice(body.Object, list, "spec", "versions")
}

func definitionOf(crd map[string]any) (Definition, error) {
	strategy, _, err := unstructured.NestedString(crd, "spec", "conversion", "strategy")
	if err != nil {
		return Definition{}, errs.Wrap(errs.Invalid, err, "conversion")
	}
	versions, err := versionsOf(crd)
	if err != nil {
		return Definition{}, err
	}
	d := Definition{Webhook: strategy == byWebhook}
	for _, v := range versions {
		name, ok := v["name"].(string)
		if !ok {
			return d, errs.New(errs.Invalid, "a version has no name")
		}
		d.Versions = append(d.Versions, name)
		if v["served"] == true {
			d.Served = append(d.Served, name)
		}
		if v["storage"] == true {
			d.Stored = name
		}
	}
	return d, nil
}

func versionsOf(crd map[string]any) ([]map[string]any, error) {
	list, _, err := unstructured.NestedSlice(crd, "spec", "versions")
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "versions")
	}
	out := make([]map[string]any, len(list))
	for i, v := range list {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, errs.New(errs.Invalid, "version %d has another form", i)
		}
		out[i] = m
	}
	return out, nil
}

// ConvertedAt names the Service of a namespace that the API server calls to convert the objects of a CRD, "" for none.
func ConvertedAt(crd *unstructured.Unstructured, ns string) string {
	at := []string{"spec", "conversion", "webhook", "clientConfig", "service"}
	service, found, err := unstructured.NestedMap(crd.Object, at...)
	if err != nil || !found || service["namespace"] != ns {
		return ""
	}
	name, _ := service["name"].(string)
	return name
}

// Distrusts reports a CRD whose converter the API server knows under another CA than the one of its Secret, with the
// spec.conversion that it is to have.
func Distrusts(crd *unstructured.Unstructured, ns string, certificates map[string]Kept) (
	conversion map[string]any, distrusts bool, err error,
) {
	if c, ok := certificates[render.SecretName(ConvertedAt(crd, ns))]; !ok || len(c.CA) == 0 {
		return nil, false, nil
	}
	body := crd.DeepCopy()
	if err := trustConversion(body, certificates); err != nil {
		return nil, false, err
	}
	conversion, _, err = unstructured.NestedMap(body.Object, "spec", "conversion")
	return conversion, !reflect.DeepEqual(crd.Object["spec"], body.Object["spec"]), err
}

// trustConversion puts the CA of its converter into a CRD, and says on it in which namespace that is.
func trustConversion(body *unstructured.Unstructured, certificates map[string]Kept) error {
	labels := body.GetLabels()
	delete(labels, LabelConverted)
	strategy, _, err := unstructured.NestedString(body.Object, "spec", "conversion", "strategy")
	if err != nil {
		return err
	}
	if strategy != byWebhook {
		body.SetLabels(labels)
		return nil
	}
	path := []string{"spec", "conversion", "webhook", "clientConfig"}
	namespace, _, err := unstructured.NestedString(body.Object, append(path, "service", "namespace")...)
	if err != nil {
		return err
	}
	if labels == nil {
		labels = map[string]string{}
	}
	labels[LabelConverted] = namespace
	body.SetLabels(labels)
	return trustAt(body.Object, certificates, path...)
}
