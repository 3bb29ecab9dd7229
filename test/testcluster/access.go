package testcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/chandler-fleet/chandler/test/testcluster/internal/pki"
)

// Files of a cluster.
const (
	clusterCert = "pki/ca.crt" // trusted by clients, trusts clients, signs requests
	clusterKey  = "pki/ca.key"
	serverCert  = "pki/server.crt"
	serverKey   = "pki/server.key"
	proxyCA     = "pki/proxy-ca.crt" // trusted by extension API servers
	proxyCert   = "pki/proxy.crt"
	proxyKey    = "pki/proxy.key"
	tokenKey    = "pki/tokens.key" // signs the tokens of service accounts

	adminKubeconfig  = "admin.kubeconfig"
	systemKubeconfig = "system.kubeconfig"
)

// mastersGroup may do everything, before any role exists.
const mastersGroup = "system:masters"

// secrets are kept to issue certificates for further users.
type secrets struct{ authority *pki.Authority }

// access is how one user reaches the cluster.
type access struct {
	kubeconfig []byte
	path       string
	config     *rest.Config
	client     kubernetes.Interface
}

func (p *plane) makeSecrets(_ context.Context) error {
	authority, err := pki.NewAuthority(p.opts.Name)
	if err != nil {
		return err
	}
	p.secrets = &secrets{authority: authority}
	server, err := authority.Issue(pki.Request{User: "kube-apiserver", Hosts: []string{
		"127.0.0.1", "localhost", serviceIP,
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}})
	if err != nil {
		return err
	}
	tokens, err := pki.NewKey()
	if err != nil {
		return err
	}
	proxy, proxyAuthority, err := newProxy()
	if err != nil {
		return err
	}
	return writeFiles(p.member.Dir, map[string][]byte{
		clusterCert: authority.Cert, clusterKey: authority.Key,
		serverCert: server.Cert, serverKey: server.Key,
		proxyCA: proxyAuthority.Cert, proxyCert: proxy.Cert, proxyKey: proxy.Key,
		tokenKey: tokens,
	})
}

// newProxy makes the identity with which the API server calls extension API servers. It has an authority of its own:
// whoever holds such a certificate may act as any user.
func newProxy() (pki.Pair, *pki.Authority, error) {
	authority, err := pki.NewAuthority("front-proxy")
	if err != nil {
		return pki.Pair{}, nil, err
	}
	pair, err := authority.Issue(pki.Request{User: "front-proxy-client"})
	return pair, authority, err
}

// writeAccess writes the kubeconfigs of the administrator and of the components.
func (p *plane) writeAccess() (err error) {
	if _, err = p.newAccess(systemKubeconfig, pki.Request{User: "system:testcluster", Groups: []string{mastersGroup}}); err != nil {
		return err
	}
	p.admin, err = p.newAccess(adminKubeconfig, pki.Request{User: "admin", Groups: []string{mastersGroup}})
	return err
}

// newAccess issues a certificate for a user and writes a kubeconfig with it.
func (p *plane) newAccess(file string, user pki.Request) (*access, error) {
	pair, err := p.secrets.authority.Issue(user)
	if err != nil {
		return nil, err
	}
	a := &access{path: p.file(file)}
	if a.kubeconfig, err = clientcmd.Write(p.kubeconfig(user.User, pair)); err != nil {
		return nil, fmt.Errorf("kubeconfig of %s: %w", user.User, err)
	}
	if a.config, err = clientcmd.RESTConfigFromKubeConfig(a.kubeconfig); err != nil {
		return nil, fmt.Errorf("kubeconfig of %s: %w", user.User, err)
	}
	a.config.QPS = -1
	if a.client, err = kubernetes.NewForConfig(a.config); err != nil {
		return nil, fmt.Errorf("client of %s: %w", user.User, err)
	}
	return a, os.WriteFile(a.path, a.kubeconfig, 0o600)
}

func (p *plane) kubeconfig(user string, pair pki.Pair) clientcmdapi.Config {
	name := p.opts.Name
	return clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server:                   fmt.Sprintf("https://127.0.0.1:%d", p.port),
			CertificateAuthorityData: p.secrets.authority.Cert,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{user: {
			ClientCertificateData: pair.Cert,
			ClientKeyData:         pair.Key,
		}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: user}},
		CurrentContext: name,
	}
}

// writeFiles writes files that only we may read.
func writeFiles(dir string, files map[string][]byte) error {
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
