package executorhost

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
	"github.com/chandler-fleet/chandler/libs/kubeconfig"
)

// decrypt decrypts a kubeconfig and makes it a client's configuration, too. Errors never quote what is in it.
//
// The gateway has checked it, and stores what it has written anew itself. It is checked here as well, before anything
// acts on it: clientcmd opens the files that a kubeconfig names while it loads it, and this is the machine on which
// that would happen. What is waived is what the event says, not what the kubeconfig asks for.
func decrypt(
	ciphertext []byte, identities seal.Identities, waived []kubeconfig.Waiver,
) (config kubeconfig.Config, cfg *rest.Config, err error) {
	defer func() { // what is in it was written by others, and other clusters are served beside this one
		if recover() != nil {
			cfg, err = nil, errs.New(errs.Invalid, "the kubeconfig cannot be read")
		}
	}()
	raw, err := identities.Open(ciphertext, kubeconfig.MaxBytes)
	if errs.Is(err, errs.Unauthenticated) {
		return config, nil, errs.New(errs.Unauthenticated, "the kubeconfig was not encrypted to this installer's key: %v", err)
	}
	if err != nil {
		return config, nil, errs.Wrap(errs.KindOf(err), err, "the stored kubeconfig")
	}
	config, err = kubeconfig.Load(raw, waived...)
	if err != nil {
		return config, nil, err
	}
	canonical, err := config.Canonical()
	if err != nil {
		return config, nil, err
	}
	cfg, err = clientcmd.RESTConfigFromKubeConfig(canonical)
	if err != nil {
		return config, nil, errs.New(errs.Invalid, "the kubeconfig cannot be used: it names no server or no user")
	}
	return config, cfg, nil
}
