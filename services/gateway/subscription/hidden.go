package subscription

import (
	"bytes"
	"encoding/json"
)

// HiddenValue stands for the value of a variable in answers to who may not read it.
const HiddenValue = "(hidden)"

// HideValues returns a configuration in which every field of environment variables is hidden but their names and where
// they are taken from: what somebody wrote with a slip in a key may be a value.
// What cannot be read as a configuration is hidden whole.
func HideValues(config json.RawMessage) json.RawMessage {
	if len(config) == 0 {
		return config
	}
	var document map[string]json.RawMessage
	if json.Unmarshal(config, &document) != nil || document == nil {
		return json.RawMessage(`{}`)
	}
	raw, there := document["env"]
	if !there || bytes.Equal(raw, []byte("null")) {
		return config
	}
	var variables []map[string]json.RawMessage
	if json.Unmarshal(raw, &variables) != nil {
		delete(document, "env")
	}
	for _, v := range variables {
		for field := range v {
			if field != "name" && field != "valueFrom" {
				v[field] = json.RawMessage(`"` + HiddenValue + `"`)
			}
		}
	}
	if variables != nil {
		hidden, err := json.Marshal(variables)
		if err != nil {
			return json.RawMessage(`{}`)
		}
		document["env"] = hidden
	}
	out, err := json.Marshal(document)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return out
}
