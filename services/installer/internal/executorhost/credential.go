package executorhost

import (
	"bytes"
	"io"

	"filippo.io/age"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/kubeconfig"
)

// decrypt decrypts a kubeconfig and makes it a client's configuration. Errors never quote what is in it.
//
// The gateway has checked it, and stores what it has written anew itself. It is checked here as well, before anything
// acts on it: clientcmd opens the files that a kubeconfig names while it loads it, and this is the machine on which
// that would happen. What is waived is what the event says, not what the kubeconfig asks for.
func decrypt(ciphertext []byte, identity age.Identity, waived []kubeconfig.Waiver) (*rest.Config, error) {
	r, err := age.Decrypt(bytes.NewReader(ciphertext), identity)
	if err != nil {
		return nil, errs.New(errs.Unauthenticated, "the kubeconfig was not encrypted to this installer's key")
	}
	raw, err := io.ReadAll(io.LimitReader(r, kubeconfig.MaxBytes+1))
	if err != nil {
		return nil, errs.New(errs.Unauthenticated, "the encrypted kubeconfig is damaged")
	}
	config, err := kubeconfig.Load(raw, waived...)
	if err != nil {
		return nil, err
	}
	canonical, err := config.Canonical()
	if err != nil {
		return nil, err
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(canonical)
	if err != nil {
		return nil, errs.New(errs.Invalid, "the kubeconfig cannot be used: it names no server or no user")
	}
	return cfg, nil
}
