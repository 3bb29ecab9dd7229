package subscription_test

import (
	"encoding/json"
	"testing"

	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

// Who may not read values reads names, and what is no value.
func TestHideValues(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		``:     ``,
		`{}`:   `{}`,
		`[1]`:  `{}`,
		`null`: `{}`,
		`{"env":[{"name":"T","Value":"s3cr3t"}]}`: `{"env":[{"Value":"(hidden)","name":"T"}]}`,
		`{"env":"x"}`:                           `{}`,
		`{"env":null,"nodeSelector":{"a":"b"}}`: `{"env":null,"nodeSelector":{"a":"b"}}`,
		`{"nodeSelector":{"a":"b"},"env":[{"name":"P","value":"s3cr3t"},{"name":"E","value":""},` +
			`{"name":"R","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}]}`: `{"env":[{"name":"P","value":"(hidden)"},` +
			`{"name":"E","value":"(hidden)"},{"name":"R","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}],` +
			`"nodeSelector":{"a":"b"}}`,
	} {
		if got := subscription.HideValues(json.RawMessage(given)); string(got) != want {
			t.Errorf("%s became %s, want %s", given, got, want)
		}
	}
}
