package subscription

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// maxConfigBytes bounds spec.config: it holds a few environment variables, volumes and tolerations.
const maxConfigBytes = 64 << 10

// configKeys are the keys of spec.config (R-SUB §4.2).
var configKeys = []string{
	"affinity", "annotations", "env", "envFrom", "nodeSelector", "resources", "selector", "tolerations", "volumeMounts",
	"volumes",
}

// CanonicalConfig returns the configuration as canonical JSON, nil where there is none.
func CanonicalConfig(raw json.RawMessage) ([]byte, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var v rule.Violations
	if len(raw) > maxConfigBytes {
		v.Addf("/config", rule.MaxLength, "config has %d bytes, %d are allowed", len(raw), maxConfigBytes)
		return nil, v.Err()
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		v.Addf("/config", rule.Object, "config must be an object")
		return nil, v.Err()
	}
	names := make([]string, 0, len(keys))
	for k := range keys {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		if !slices.Contains(configKeys, k) {
			v.Addf("/config", rule.OneOf, "config has the unknown key %q: want some of %s", k,
				strings.Join(configKeys, ", "))
		}
	}
	if err := v.Err(); err != nil || len(keys) == 0 {
		return nil, err
	}
	if wrong := render.CheckConfig(raw); len(wrong) > 0 {
		return nil, &rule.Error{Violations: wrong}
	}
	body, err := digest.Canonical(raw)
	return body, errs.Wrap(errs.Invalid, err, "config cannot be written as canonical JSON")
}

// CheckIdentities checks identities of a cloud in a configuration. That an upgrade should wait for a person is advice
// (R-TOK-2), and a rule where the caller wants it strict.
func CheckIdentities(body []byte, approval string, how model.Validate) (warnings []string, err error) {
	if err := CheckTokens(body); err != nil {
		return nil, err
	}
	advice, err := AdviseApproval(body, approval)
	if err != nil || advice == nil {
		return nil, err
	}
	if how == model.ValidateStrict {
		return nil, advice
	}
	return []string{advice.Error()}, nil
}
