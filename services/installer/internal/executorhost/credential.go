package executorhost

import (
	"bytes"
	"io"

	"filippo.io/age"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// kubeconfigBytes bounds a decrypted kubeconfig; the gateway takes at most 256 KiB.
const kubeconfigBytes = 512 << 10

// decrypt decrypts a kubeconfig and makes it a client's configuration. Errors never quote what is in it.
func decrypt(ciphertext []byte, identity age.Identity) (*rest.Config, error) {
	r, err := age.Decrypt(bytes.NewReader(ciphertext), identity)
	if err != nil {
		return nil, errs.New(errs.Unauthenticated, "the kubeconfig was not encrypted to this installer's key")
	}
	raw, err := io.ReadAll(io.LimitReader(r, kubeconfigBytes+1))
	if err != nil {
		return nil, errs.New(errs.Unauthenticated, "the encrypted kubeconfig is damaged")
	}
	if len(raw) > kubeconfigBytes {
		return nil, errs.New(errs.TooLarge, "the kubeconfig has more than %d bytes", kubeconfigBytes)
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		return nil, errs.New(errs.Invalid, "the kubeconfig cannot be used: it names no server or no user")
	}
	return cfg, refuseLocal(cfg)
}

// refuseLocal refuses what would run a program or read a file of the hub. The gateway refuses it as well;
// this is the place where it would happen.
func refuseLocal(c *rest.Config) error {
	switch {
	case c.ExecProvider != nil:
		return errs.New(errs.Forbidden, "the kubeconfig would run a program (exec)")
	case c.AuthProvider != nil:
		return errs.New(errs.Forbidden, "the kubeconfig asks for an authentication plugin (auth-provider)")
	case c.BearerTokenFile != "" || c.CAFile != "" || c.CertFile != "" || c.KeyFile != "":
		return errs.New(errs.Forbidden, "the kubeconfig refers to files")
	}
	return nil
}
