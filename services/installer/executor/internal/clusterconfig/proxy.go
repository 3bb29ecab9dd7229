package clusterconfig

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// The variables are one unit (R-SUB-10).
const (
	varHTTP  = "HTTP_PROXY"
	varHTTPS = "HTTPS_PROXY"
	varNo    = "NO_PROXY"
)

// Proxy is the proxy of a cluster; empty values are unset (R-PRX-2).
type Proxy struct {
	HTTP  string `json:"http,omitempty"`
	HTTPS string `json:"https,omitempty"`
	No    string `json:"no,omitempty"`
}

// Overridden reports a subscription's config that names any of the variables, even empty: then none of the cluster's is
// used (R-SUB-10).
func Overridden(config json.RawMessage) (bool, error) {
	if len(config) == 0 {
		return false, nil
	}
	var c struct {
		Env []struct {
			Name string `json:"name"`
		} `json:"env"`
	}
	if err := json.Unmarshal(config, &c); err != nil {
		return false, errs.Wrap(errs.Invalid, err, "config of a subscription")
	}
	for _, e := range c.Env {
		if e.Name == varHTTP || e.Name == varHTTPS || e.Name == varNo {
			return true, nil
		}
	}
	return false, nil
}

// Apply puts the variables into every container of a Deployment, over those of the same name (R-PRX-1).
func (p Proxy) Apply(deployment *unstructured.Unstructured) error {
	containers, found, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if err != nil || !found {
		return err
	}
	for _, c := range containers {
		container, ok := c.(map[string]any)
		if !ok {
			continue
		}
		for _, v := range []struct{ name, value string }{{varHTTP, p.HTTP}, {varHTTPS, p.HTTPS}, {varNo, p.No}} {
			if v.value != "" {
				setEnv(container, v.name, v.value)
			}
		}
	}
	return unstructured.SetNestedSlice(deployment.Object, containers, "spec", "template", "spec", "containers")
}

func setEnv(container map[string]any, name, value string) {
	entry := map[string]any{"name": name, "value": value}
	env, ok := container["env"].([]any)
	if !ok {
		container["env"] = []any{entry}
		return
	}
	for i, e := range env {
		if m, ok := e.(map[string]any); ok && m["name"] == name {
			env[i] = entry
			return
		}
	}
	container["env"] = append(env, entry)
}
