package testcluster

import (
	"fmt"
	"os"
)

const (
	serviceCIDR = "10.96.0.0/16"
	serviceIP   = "10.96.0.1" // of the service "kubernetes", the first of the range
	podCIDR     = "10.244.0.1/16"
)

// componentEnv is all that a component inherits: no proxy, no tuning and no other cluster of whoever started us. A
// sixth of the API server's time was garbage collection: it may take five times what it holds, while that is little.
func componentEnv(home string) []string {
	return []string{"HOME=" + home, "TMPDIR=" + os.TempDir(), "PATH=/usr/bin:/bin", "GOGC=400", "GOMEMLIMIT=2GiB"}
}

func (p *plane) apiServerArgs() []string {
	return []string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", p.port),
		"--tls-cert-file=" + p.file(serverCert),
		"--tls-private-key-file=" + p.file(serverKey),
		"--client-ca-file=" + p.file(clusterCert),
		"--token-auth-file=" + p.file(userTokens),

		"--etcd-servers=" + p.store.url(),
		"--etcd-prefix=" + p.prefix(),

		"--authorization-mode=RBAC",
		"--allow-privileged=true",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + p.file(tokenKey),
		"--service-account-signing-key-file=" + p.file(tokenKey),

		"--requestheader-client-ca-file=" + p.file(proxyCA),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + p.file(proxyCert),
		"--proxy-client-key-file=" + p.file(proxyKey),

		// No kube-proxy serves the addresses of Services: webhooks and extension API servers are called at their
		// endpoints.
		"--enable-aggregator-routing=true",
		// Nobody reaches the API server through the service, so its endpoints need not be kept up to date.
		"--endpoint-reconciler-type=none",
		"--event-ttl=10m",
		"--profiling=false",
	}
}

func (p *plane) controllerManagerArgs() []string {
	return append(p.clientArgs(),
		"--controllers=*",
		"--root-ca-file="+p.file(clusterCert),
		"--service-account-private-key-file="+p.file(tokenKey),
		"--cluster-signing-cert-file="+p.file(clusterCert), // signs what is asked for by CertificateSigningRequest
		"--cluster-signing-key-file="+p.file(clusterKey),
		"--node-monitor-period=1s", // a new node is used as soon as it is ready, not at the next round
		// On a busy machine kwok's heartbeats come late. The nodes are made up, so they are never lost; but a pod that
		// the controller once calls unready stays so, since kwok has no probe that would find it ready again.
		"--node-monitor-grace-period=24h",
		"--profiling=false",
	)
}

func (p *plane) schedulerArgs() []string {
	return append(p.clientArgs(), "--profiling=false")
}

// clientArgs are for the components of Kubernetes: one of each, so no election; nobody asks them anything, so no port.
func (p *plane) clientArgs() []string {
	return []string{
		"--kubeconfig=" + p.file(systemKubeconfig),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
}

func (p *plane) kwokArgs() []string {
	return []string{
		"--kubeconfig=" + p.file(systemKubeconfig),
		"--config=" + p.programs.Stages(),
		"--manage-all-nodes=true",
		"--cidr=" + podCIDR,
		"--node-ip=127.0.0.1",
	}
}
