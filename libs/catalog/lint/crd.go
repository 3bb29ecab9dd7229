package lint

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/chandler-fleet/chandler/libs/bundle"
)

// crdCheck holds the CRDs.
type crdCheck struct {
	in  *parsed
	out *report
}

func (l crdCheck) run() {
	l.crdStructure()
}

// crdStructure validates CRDs as an API server would, without their schemas and their status: those are
// checked when they are applied, and cost most of the time.
func (l crdCheck) crdStructure() {
	for _, o := range l.in.objects {
		if o.kind != bundle.KindCRD {
			continue
		}
		crd, err := typedCRD(o)
		if err != nil {
			l.out.errorf("crd-structure", o.at("spec"), "the CRD %s does not have the right form: %v", o.name, err)
			continue
		}
		if crd == nil {
			l.out.errorf("crd-structure", o.at("apiVersion"),
				"the CRD %s is of version %s, which is not known; use apiextensions.k8s.io/v1", o.name, o.apiVersion)
			continue
		}
		for _, e := range validation.ValidateCustomResourceDefinition(context.Background(), crd) {
			l.out.errorf("crd-structure", o.at(steps(e)...), "the CRD %s would be refused: %s: %s", o.name, e.Field,
				reason(e))
		}
	}
}

// reason is what a validation error says, without the whole value that it quotes.
func reason(e *field.Error) string {
	text := e.Type.String()
	switch v := e.BadValue.(type) {
	case string:
		text += fmt.Sprintf(" %q", v)
	case bool, int, int32, int64:
		text += fmt.Sprintf(" %v", v)
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// typedCRD decodes with defaults into the form that is validated, nil for an unknown version. Schemas are
// replaced by ones that take everything, with what refers to them.
func typedCRD(o object) (*apiextensions.CustomResourceDefinition, error) {
	out := &apiextensions.CustomResourceDefinition{}
	keep := true
	switch o.apiVersion {
	case "apiextensions.k8s.io/v1":
		var in apiextensionsv1.CustomResourceDefinition
		if err := o.decode(&in); err != nil {
			return nil, err
		}
		for i := range in.Spec.Versions {
			v := &in.Spec.Versions[i]
			v.SelectableFields = nil
			if v.Schema != nil {
				v.Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &keep,
				}
			}
		}
		apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(&in)
		err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
			&in, out, nil)
		return withStatus(out), err
	case "apiextensions.k8s.io/v1beta1":
		var in apiextensionsv1beta1.CustomResourceDefinition
		if err := o.decode(&in); err != nil {
			return nil, err
		}
		open := &apiextensionsv1beta1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1beta1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep},
		}
		for i := range in.Spec.Versions {
			v := &in.Spec.Versions[i]
			v.SelectableFields = nil
			if v.Schema != nil {
				v.Schema, in.Spec.Validation = nil, open
			}
		}
		if in.Spec.Validation != nil {
			in.Spec.Validation = open
		}
		in.Spec.SelectableFields = nil
		apiextensionsv1beta1.SetObjectDefaults_CustomResourceDefinition(&in)
		err := apiextensionsv1beta1.Convert_v1beta1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
			&in, out, nil)
		return withStatus(out), err
	}
	return nil, nil
}

// withStatus gives a CRD the status that it would have when it was just made.
func withStatus(crd *apiextensions.CustomResourceDefinition) *apiextensions.CustomResourceDefinition {
	crd.Status = apiextensions.CustomResourceDefinitionStatus{}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			crd.Status.StoredVersions = append(crd.Status.StoredVersions, v.Name)
		}
	}
	return crd
}

// steps turns the path of a validation error, such as spec.versions[1].name, into one of docs.
func steps(e *field.Error) []string {
	var out []string
	word := ""
	for _, r := range e.Field {
		switch r {
		case '.', ']':
			if word != "" {
				out = append(out, word)
			}
			word = ""
		case '[':
			out = append(out, word)
			word = "#"
		default:
			word += string(r)
		}
	}
	if word != "" {
		out = append(out, word)
	}
	return out
}
