package failure

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/render"
)

// What a webhook, a policy or an API server says of an object is told in one bounded line, without control characters
// and without values of configuration and Secrets; the words of a webhook are in quotes (issue 12, 1.10).
func TestWordsOfOthers(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-\"quoted\"\nand more"
	deployment := render.Object{
		GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Namespace: "ops", Name: "gauge",
		Body: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"env": []any{
				map[string]any{"name": "PASSWORD", "value": secret},
				map[string]any{"name": "LEVEL", "value": "debug"},
				map[string]any{"name": "FROM", "valueFrom": map[string]any{}},
			}}},
		}}}},
	}
	inSecret := render.Object{
		GVK: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Namespace: "ops", Name: "key",
		Body: map[string]any{
			"data":       map[string]any{"a": base64.StdEncoding.EncodeToString([]byte("in-data-1"))},
			"stringData": map[string]any{"b": "in-string-data"},
		},
	}
	const webhook = `admission webhook "w.sea.test" denied the request: `
	for name, c := range map[string]struct {
		of   render.Object
		err  error
		want string
	}{
		"a webhook": {
			deployment, denied(webhook+`no "good"`, 400),
			`Deployment ops/gauge: ` + webhook + `"no \"good\""`,
		},
		"a webhook that pretends": {
			deployment, denied(webhook+"\x1b[2Jno\nplan approved \u202eby", 403),
			`Deployment ops/gauge: ` + webhook + `"\x1b[2Jno\nplan approved \u202eby"`,
		},
		"a webhook that gives a value away": {
			deployment, denied(webhook+"PASSWORD is "+secret+", LEVEL is debug", 400),
			`Deployment ops/gauge: ` + webhook + `"PASSWORD is (withheld), LEVEL is debug"`,
		},
		"a policy": {
			inSecret, denied(`ValidatingAdmissionPolicy 'p' with binding 'b' denied request: in-data-1 in-string-data`, 422),
			`Secret ops/key: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "(withheld) (withheld)"`,
		},
		"an API server that quotes a value": {
			deployment, denied(`env[0].value: Invalid value: "hunter2-\"quoted\"\nand more": no`, 422),
			`Deployment ops/gauge: env[0].value: Invalid value: "(withheld)": no`,
		},
		"base64": {
			inSecret, errors.New("data: " + base64.StdEncoding.EncodeToString([]byte("in-data-1")) + "\r\nend\x00"),
			`Secret ops/key: data: (withheld)  end\u0000`,
		},
		"too long": {
			deployment, denied(webhook+strings.Repeat("é", maxWords), 400),
			`Deployment ops/gauge: ` + webhook + `"` + strings.Repeat("é", maxWords/2) + `…"`,
		},
		"a value at the bound": {
			deployment, denied(webhook+strings.Repeat("x", maxWords-3)+secret, 400),
			`Deployment ops/gauge: ` + webhook + `"` + strings.Repeat("x", maxWords-3) + `(wi…"`,
		},
	} {
		f, err := OfStep(c.of, c.err)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if f.Message != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, f.Message, c.want)
		}
	}
}
