package render_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/render"
)

// TestCheckConfig: every part of a subscription's configuration is checked, with the place of what is wrong (R-SUB-14).
func TestCheckConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ config, at, message string }{
		{`{"resources": {"requests": {"cpu": "lots"}}}`, "/config/resources", "quantities must match"},
		{`{"resources": {"requests": {"cpu": "-1"}}}`, "/config/resources/requests/cpu", "negative"},
		{
			`{"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}`, "/config/resources/requests/cpu",
			"more than the limit",
		},
		{`{"resources": {"limit": {"cpu": "1"}}}`, "/config/resources", `unknown field "limit"`},
		{`{"resources": {"limits": {"c p u": "1"}}}`, "/config/resources/limits/c p u", "alphanumeric"},
		{`{"env": {"A": "b"}}`, "/config/env", "cannot unmarshal object"},
		{`{"env": [{"value": "b"}]}`, "/config/env/0/name", "environment variable name"},
		{`{"env": [{"name": "A", "value": 1}]}`, "/config/env/0", "cannot unmarshal number"},
		{
			`{"env": [{"name": "A", "value": "b", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}`,
			"/config/env/0", "both",
		},
		{`{"env": [{"name": "A", "valueFrom": {}}]}`, "/config/env/0/valueFrom", "0 sources"},
		{`{"env": [{"name": "A", "vlaue": "b"}]}`, "/config/env/0", `unknown field "vlaue"`},
		{`{"env": [null]}`, "/config/env/0", "null"},
		{`{"envFrom": [{}]}`, "/config/envFrom/0", "0 sources"},
		{`{"volumes": [{"emptyDir": {}}]}`, "/config/volumes/0/name", "RFC 1123"},
		{
			`{"volumes": [{"name": "a", "emptyDir": {}, "secret": {"secretName": "s"}}]}`, "/config/volumes/0",
			"2 sources",
		},
		{`{"volumeMounts": [{"name": "a"}]}`, "/config/volumeMounts/0/mountPath", "empty"},
		{`{"tolerations": [{"key": "a", "operator": "Exist"}]}`, "/config/tolerations/0/operator", `"Exist"`},
		{
			`{"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}`, "/config/tolerations/0/value",
			"Exists",
		},
		{`{"tolerations": [{"operator": "Equal"}]}`, "/config/tolerations/0/operator", "no key"},
		{`{"tolerations": [{"key": "a", "effect": "NoRun"}]}`, "/config/tolerations/0/effect", `"NoRun"`},
		{
			`{"tolerations": [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 5}]}`,
			"/config/tolerations/0/effect", "NoExecute",
		},
		{`{"nodeSelector": {"a": 1}}`, "/config/nodeSelector", "cannot unmarshal number"},
		{`{"nodeSelector": {"a b": "c"}}`, "/config/nodeSelector/a b", "alphanumeric"},
		{`{"nodeSelector": {"a": "c d"}}`, "/config/nodeSelector/a", "valid label"},
		{`{"annotations": {"a": true}}`, "/config/annotations", "cannot unmarshal bool"},
		{`{"annotations": {"a/b/c": ""}}`, "/config/annotations/a~1b~1c", "alphanumeric"},
		{`{"selector": {"matchLabels": {"a": "b c"}}}`, "/config/selector", "valid label"},
		{`{"selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}`, "/config/selector", `"Is"`},
		{`{"affinity": {"nodeAffinty": {}}}`, "/config/affinity", `unknown field "nodeAffinty"`},
		{
			`{"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}}`,
			"/config/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms", "empty",
		},
		{
			`{"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]}}}}`,
			"/config/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/0/values", "In does not take 0",
		},
		{
			`{"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}}`,
			"/config/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/topologyKey", "empty",
		},
		{
			`{"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 101, "podAffinityTerm": {"topologyKey": "a"}}]}}}`,
			"/config/affinity/podAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/weight", "101",
		},
		{`{"env": [{"name": "A", "Value": "b"}]}`, "/config/env/0", `"Value" has other capital letters`},
		{`{"resources": {"Limits": {"cpu": "1"}}}`, "/config/resources", `"Limits"`},
		{`[]`, "/config", "object"},
	} {
		found := render.CheckConfig(json.RawMessage(c.config))
		if len(found) != 1 || found[0].Field != c.at || found[0].Rule != "R-SUB-14" ||
			!strings.Contains(found[0].Error(), c.message) {
			t.Errorf("%s: %v, want %q at %s", c.config, found, c.message, c.at)
		}
	}
	for _, good := range []string{
		``, `null`, `{}`, `{"env": null, "resources": null, "affinity": {}}`,
		`{"env": [{"name": "A"}, {"name": "A"}]}`, `{
		"env": [{"name": "HTTP_PROXY", "value": ""}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
		"envFrom": [{"prefix": "X_", "configMapRef": {"name": "a"}}],
		"volumes": [{"name": "a"}, {"name": "b", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}],
		"volumeMounts": [{"name": "a", "mountPath": "/a"}],
		"tolerations": [{"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoExecute", "tolerationSeconds": 5}],
		"resources": {"requests": {"cpu": "100m", "nvidia.com/gpu": 1}, "limits": {"memory": "1Gi", "nvidia.com/gpu": 1}},
		"nodeSelector": {"kubernetes.io/os": "linux", "empty": ""},
		"annotations": {"Example.com/Free": "any text at all"},
		"selector": {"matchLabels": {"a": "b"}},
		"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}]}}}`,
	} {
		if found := render.CheckConfig(json.RawMessage(good)); len(found) != 0 {
			t.Errorf("%s: %v", good, found)
		}
	}
}

// TestAdviseConfig: a mount of a volume that the configuration does not define is named by its place (R-SUB-14).
func TestAdviseConfig(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		``:     "",
		`null`: "",
		`[]`:   "",
		`{"volumes": [{"name": "a"}], "volumeMounts": [{"name": "a", "mountPath": "/a"}, {"name": "a", "mountPath": "/b"}]}`: "",
		`{"volumes": [{"name": "a"}], "volumeMounts": [{"name": "a", "mountPath": "/a"}, {"name": "b", "mountPath": "/b"}]}`: `config.volumeMounts[1].name is "b"`,
		`{"volumeMounts": [{"name": "certs", "mountPath": "/c"}]}`:                                                           `config.volumeMounts[0].name is "certs"`,
	} {
		got := strings.Join(render.AdviseConfig(json.RawMessage(config)), "; ")
		if (got != "") != (want != "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s: advised %q, want %q", config, got, want)
		}
	}
}
