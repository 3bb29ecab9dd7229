package access

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Person is where the credential of who bootstraps a cluster comes from. It is for programs that this person runs: its
// configuration runs programs and opens files, as kubectl does.
type Person struct {
	Path    string // of a kubeconfig; "" is that of kubectl: KUBECONFIG, or the one at home
	Raw     []byte // a kubeconfig, instead of Path
	Context string // "" is the current one
}

// Config loads it. Programs that it names run when it is used.
func (p Person) Config() (*rest.Config, error) {
	override := &clientcmd.ConfigOverrides{CurrentContext: p.Context}
	if len(p.Raw) > 0 {
		config, err := clientcmd.Load(p.Raw)
		if err != nil {
			return nil, errs.Wrap(errs.Invalid, err, "the kubeconfig cannot be read")
		}
		c, err := clientcmd.NewDefaultClientConfig(*config, override).ClientConfig()
		return c, errs.Wrap(errs.Invalid, err, "kubeconfig")
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = p.Path
	c, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, override).ClientConfig()
	return c, errs.Wrap(errs.Invalid, err, "kubeconfig")
}
