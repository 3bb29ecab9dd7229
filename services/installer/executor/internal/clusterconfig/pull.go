package clusterconfig

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

const (
	// LabelPullSecret marks the secrets in Chandler's own namespace with which operators' images are pulled.
	LabelPullSecret = "chandler-fleet.io/pull-secret"
	// labelCopy marks the copies in the operators' namespaces.
	labelCopy = "chandler-fleet.io/pull-secret-copy"
	// copyPrefix keeps the copies apart from what people have in their namespaces.
	copyPrefix = "chandler-pull-"
	maxName    = 253

	typeDockerConfig = "kubernetes.io/dockerconfigjson"
	keyDockerConfig  = ".dockerconfigjson"
)

// PullSecret is one secret with which images are pulled.
type PullSecret struct {
	Name string `json:"name"` // of the copies
	Data string `json:"data"` // base64
}

// pullSecrets takes the secrets that can be used, sorted.
func pullSecrets(list []unstructured.Unstructured) []PullSecret {
	var out []PullSecret
	for name, data := range dockerConfigs(list) {
		out = append(out, PullSecret{Name: copyName(name), Data: data})
	}
	slices.SortFunc(out, func(a, b PullSecret) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// dockerConfigs are the contents of secrets with which images can be pulled, by name.
func dockerConfigs(list []unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	for _, o := range list {
		kind, _, err := unstructured.NestedString(o.Object, "type")
		data, found, dataErr := unstructured.NestedString(o.Object, "data", keyDockerConfig)
		if err == nil && dataErr == nil && found && kind == typeDockerConfig {
			out[o.GetName()] = data
		}
	}
	return out
}

func copyName(name string) string {
	n := copyPrefix + name
	if len(n) <= maxName {
		return n
	}
	short := digest.Bytes([]byte(n)).Short()
	return n[:maxName-len(short)] + short
}

func (p PullSecret) object(namespace string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": typeDockerConfig,
		"metadata": map[string]any{
			"name": p.Name, "namespace": namespace,
			"labels": map[string]any{kube.LabelManaged: "true", labelCopy: "true"},
		},
		"data": map[string]any{keyDockerConfig: p.Data},
	}}
}

// Attach returns the imagePullSecrets of a service account with those of Chandler as they are to be now: what others
// put there stays, in its place, and Chandler's former ones go. changed is false where nothing is to be done.
func Attach(have []any, secrets []PullSecret) (next []any, changed bool) {
	wanted := map[string]bool{}
	for _, s := range secrets {
		wanted[s.Name] = true
	}
	for _, h := range have {
		name := nameOf(h)
		if strings.HasPrefix(name, copyPrefix) && !wanted[name] {
			changed = true
			continue
		}
		delete(wanted, name)
		next = append(next, h)
	}
	for _, s := range secrets {
		if wanted[s.Name] {
			next, changed = append(next, map[string]any{"name": s.Name}), true
		}
	}
	return next, changed
}

// Leave keeps the pull secrets on an account whose manifest brings a list of its own.
func Leave(account *unstructured.Unstructured, secrets []PullSecret) error {
	have, found, err := unstructured.NestedSlice(account.Object, "imagePullSecrets")
	if err != nil || !found {
		return err
	}
	next, _ := Attach(have, secrets)
	return unstructured.SetNestedSlice(account.Object, next, "imagePullSecrets")
}

func nameOf(reference any) string {
	m, ok := reference.(map[string]any)
	if !ok {
		return ""
	}
	name, ok := m["name"].(string)
	if !ok {
		return ""
	}
	return name
}

// Names are the names of the copies.
func Names(secrets []PullSecret) []string {
	out := make([]string, 0, len(secrets))
	for _, s := range secrets {
		out = append(out, s.Name)
	}
	return out
}
