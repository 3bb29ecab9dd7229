package testcluster

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"

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
	userTokens  = "pki/users.csv"  // the tokens of our own users

	adminKubeconfig  = "admin.kubeconfig"
	systemKubeconfig = "system.kubeconfig"
)

// Users of a cluster beside its service accounts.
const (
	adminUser  = "admin"
	systemUser = "system:testcluster" // the components
)

// mastersGroup may do everything, before any role exists.
const mastersGroup = "system:masters"

// secrets are what users are recognized by. They have tokens, since the API server verifies a client certificate again
// at each request.
type secrets struct {
	authority *pki.Authority
	tokens    map[string]string // by user
}

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
	p.secrets = &secrets{authority: authority, tokens: map[string]string{}}
	for _, user := range []string{adminUser, systemUser, sharedUser} {
		p.secrets.tokens[user] = rand.Text()
	}
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
		tokenKey: tokens, userTokens: p.secrets.users(),
	})
}

// users is the file that tells the API server whose token is whose: token, user, id, groups.
func (s *secrets) users() []byte {
	var file strings.Builder
	for user, token := range s.tokens {
		group := mastersGroup
		if user == sharedUser {
			group = ""
		}
		fmt.Fprintf(&file, "%s,%s,%s,%s\n", token, user, user, group)
	}
	return []byte(file.String())
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
	if _, err = p.newAccess(systemKubeconfig, systemUser); err != nil {
		return err
	}
	p.admin, err = p.newAccess(adminKubeconfig, adminUser)
	return err
}

// newAccess writes a kubeconfig with the token of a user.
func (p *plane) newAccess(file, user string) (_ *access, err error) {
	a := &access{path: p.file(file)}
	a.kubeconfig, err = p.kubeconfig(user, clientcmdapi.AuthInfo{Token: p.secrets.tokens[user]})
	if err != nil {
		return nil, err
	}
	if a.config, err = clientcmd.RESTConfigFromKubeConfig(a.kubeconfig); err != nil {
		return nil, fmt.Errorf("kubeconfig of %s: %w", user, err)
	}
	a.config.QPS = -1
	if a.client, err = kubernetes.NewForConfig(a.config); err != nil {
		return nil, fmt.Errorf("client of %s: %w", user, err)
	}
	return a, os.WriteFile(a.path, a.kubeconfig, 0o600)
}

// CertificateKubeconfig is a kubeconfig of the administrator with a client certificate instead of a token.
func (c *Cluster) CertificateKubeconfig() ([]byte, error) {
	pair, err := c.plane.secrets.authority.Issue(pki.Request{User: adminUser, Groups: []string{mastersGroup}})
	if err != nil {
		return nil, err
	}
	return c.plane.kubeconfig(adminUser, clientcmdapi.AuthInfo{
		ClientCertificateData: pair.Cert,
		ClientKeyData:         pair.Key,
	})
}

func (p *plane) kubeconfig(user string, credentials clientcmdapi.AuthInfo) ([]byte, error) {
	name := p.opts.Name
	config, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server:                   fmt.Sprintf("https://127.0.0.1:%d", p.port),
			CertificateAuthorityData: p.secrets.authority.Cert,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{user: &credentials},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: user}},
		CurrentContext: name,
	})
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of %s: %w", user, err)
	}
	return config, nil
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
