package objects

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/services/installer/executor/internal/preflight"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// As returns the client that writes an object of a plan (R-OG-60, R-OG-61).
func (w Writer) As(x *kube.Execution, gvk schema.GroupVersionKind) (*kube.Epoch, error) {
	if x.Spec.Account == "" || preflight.Direct(gvk) {
		return w.Env.Client, nil
	}
	w.accountsMu.Lock()
	defer w.accountsMu.Unlock()
	if c, ok := w.accounts[x.Spec.Account]; ok {
		return c, nil
	}
	a, err := kube.ParseAccount(x.Spec.Account)
	if err != nil {
		return nil, err
	}
	c, err := w.Env.Client.As(a)
	if err != nil {
		return nil, err
	}
	w.accounts[x.Spec.Account] = c
	return c, nil
}
