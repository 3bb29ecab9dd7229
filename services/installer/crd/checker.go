package crd

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// checker does to an object what the API server does when it is written in one version: prune, default, validate.
type checker struct {
	apiVersion string
	structural *schema.Structural // nil where the version has no schema
	openAPI    validation.SchemaValidator
	rules      *schemacel.Validator // nil without x-kubernetes-validations
	prunes     bool
	checks     []string // versions of the plan that objects listed in this one are checked in
}

// newChecker reads the schema of one version of a definition.
func newChecker(c apiextensionsv1.CustomResourceDefinition, name string) (*checker, error) {
	v, _ := version(c, name)
	k := &checker{apiVersion: c.Spec.Group + "/" + name, prunes: !c.Spec.PreserveUnknownFields}
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return k, nil
	}
	unreadable := func(err error) error {
		return errs.New(errs.Invalid, "the schema of %s, version %s, cannot be used: %v", c.Name, name, err).At(
			"/spec/versions/schema", "R-CRD-6")
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		v.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
		return nil, unreadable(err)
	}
	var err error
	if k.structural, err = schema.NewStructural(&internal); err != nil {
		return nil, unreadable(err)
	}
	if k.openAPI, _, err = validation.NewSchemaValidator(&internal); err != nil {
		return nil, unreadable(err)
	}
	k.rules = schemacel.NewValidator(k.structural, true, celconfig.PerCallLimit)
	return k, nil
}

// written returns the object as it would be stored in this version.
func (k *checker) written(object map[string]any) map[string]any {
	o := runtime.DeepCopyJSON(object)
	o["apiVersion"] = k.apiVersion
	if k.structural == nil {
		return o
	}
	if k.prunes {
		pruning.Prune(o, k.structural, true)
	}
	defaulting.Default(o, k.structural)
	return o
}

// problems are what makes an object invalid in this version, sorted.
func (k *checker) problems(ctx context.Context, object map[string]any, b *Budget) []string {
	if k.structural == nil {
		return nil
	}
	o := k.written(object)
	found := validation.ValidateCustomResource(nil, o, k.openAPI)
	if len(found) == 0 && k.rules != nil { // rules are evaluated over objects of the right form only
		var broken field.ErrorList
		var rest int64
		broken, rest = k.rules.Validate(ctx, nil, k.structural, o, nil, celconfig.RuntimeCELCostBudget)
		b.Cost -= celconfig.RuntimeCELCostBudget - max(rest, 0)
		found = append(found, broken...)
	}
	out := make([]string, 0, len(found))
	for _, e := range found {
		out = append(out, problem(e))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// unknown are the fields of an object that this version drops, sorted.
func (k *checker) unknown(object map[string]any) []string {
	if k.structural == nil || !k.prunes {
		return nil
	}
	o := runtime.DeepCopyJSON(object)
	fields := pruning.PruneWithOptions(o, k.structural, true,
		schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	slices.Sort(fields)
	return slices.Compact(fields)
}

// problem says what is wrong where, without the value: it can be anything, secrets and whole documents included.
func problem(e *field.Error) string {
	text := e.Field + ": " + strings.ToLower(e.Type.String())
	if detail := strings.TrimPrefix(e.Detail, e.Field+" in body "); detail != "" {
		text += ": " + detail
	}
	if len(text) > maxProblem {
		text = strings.ToValidUTF8(text[:maxProblem], "") + "…"
	}
	return text
}

// maxProblem bounds one of them in bytes: an enum can have hundreds of values.
const maxProblem = 240
