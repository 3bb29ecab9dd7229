package api

import (
	"bytes"
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// merge applies a JSON merge patch (RFC 7396) to the intent of a catalog. What comes out is held against
// the same schema as the body of a PUT.
func (a *API) merge(now model.ChangeCatalog, patch map[string]any) (model.ChangeCatalog, error) {
	var out model.ChangeCatalog
	raw, err := json.Marshal(now)
	if err != nil {
		return out, errs.Wrap(errs.Internal, err, "encode the intent of a catalog")
	}
	var target any
	if err := json.Unmarshal(raw, &target); err != nil {
		return out, errs.Wrap(errs.Internal, err, "read the intent of a catalog")
	}
	merged := mergePatch(target, patch)
	var v rule.Violations
	for _, err := range huma.NewModelValidator().Validate(typeOf[model.ChangeCatalog](), merged) {
		if d, ok := err.(*huma.ErrorDetail); ok { //nolint:errorlint // what the validator makes, not what wraps it
			v.Addf("/"+d.Location, ruleOf(d.Message), "%s", d.Message)
			continue
		}
		v.Addf("/", "syntax", "%s", err)
	}
	if err := v.Err(); err != nil {
		return out, err
	}
	if raw, err = json.Marshal(merged); err != nil {
		return out, errs.Wrap(errs.Internal, err, "encode the intent of a catalog")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&out); err != nil {
		return out, errs.New(errs.Invalid, "the patched intent is not of the expected form").At("/", "syntax")
	}
	return out, nil
}

// mergePatch is the function of RFC 7396: null removes, an object is merged, anything else replaces.
func mergePatch(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for key, value := range changes {
		if value == nil {
			delete(object, key)
			continue
		}
		object[key] = mergePatch(object[key], value)
	}
	return object
}
