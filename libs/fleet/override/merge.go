package override

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Merge lays a configuration of a subscription (OLM's spec.config, a JSON object) over another one, as OLM lays it over
// the Deployments of an operator: of env each variable takes the place of the one of its name, as a whole, or is added
// behind; every other key takes the place of the other's. A key that is null takes the other's away. Nothing is
// nothing.
func Merge(base, over json.RawMessage) (json.RawMessage, error) {
	out, err := object("the configuration", base)
	if err != nil {
		return nil, err
	}
	top, err := object("the configuration of an override", over)
	if err != nil {
		return nil, err
	}
	for key, value := range top {
		switch {
		case string(value) == "null":
			delete(out, key)
		case key == "env":
			if out[key], err = mergeEnv(out[key], value); err != nil {
				return nil, err
			}
		default:
			out[key] = value
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	return json.Marshal(out)
}

func object(what string, raw json.RawMessage) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	if len(raw) == 0 || string(raw) == "null" {
		return out, nil
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("%s must be an object: %w", what, err)
	}
	return out, nil
}

// variable is a variable of env as it was written, with its name.
type variable struct {
	name string
	raw  json.RawMessage
}

func variables(raw json.RawMessage) ([]variable, error) {
	var list []json.RawMessage
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, fmt.Errorf("env must be a list: %w", err)
		}
	}
	out := make([]variable, 0, len(list))
	for i, one := range list {
		var named struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(one, &named); err != nil {
			return nil, fmt.Errorf("env[%d] must be an object with a name: %w", i, err)
		}
		out = append(out, variable{named.Name, one})
	}
	return out, nil
}

// mergeEnv keeps the order of the first list: a variable may refer to those before it.
func mergeEnv(base, over json.RawMessage) (json.RawMessage, error) {
	list, err := variables(base)
	if err != nil {
		return nil, err
	}
	top, err := variables(over)
	if err != nil {
		return nil, err
	}
	for _, v := range top {
		same := func(o variable) bool { return o.name == v.name }
		at := slices.IndexFunc(list, same)
		if at < 0 {
			list = append(list, v)
			continue
		}
		list[at] = v
		list = slices.Concat(list[:at+1], slices.DeleteFunc(slices.Clone(list[at+1:]), same))
	}
	out := make([]json.RawMessage, len(list))
	for i, v := range list {
		out[i] = v.raw
	}
	return json.Marshal(out)
}
