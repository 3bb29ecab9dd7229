package testcluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/chandler-fleet/chandler/test/internal/proc"
	"github.com/chandler-fleet/chandler/test/testcluster/binaries"
	"github.com/chandler-fleet/chandler/test/testcluster/internal/pki"
	"github.com/chandler-fleet/chandler/test/testcluster/internal/pool"
)

// Files of etcd. It trusts an authority of its own, so that the users of a cluster cannot reach around the API server.
const (
	etcdCA   = "pki/ca.crt"
	etcdCert = "pki/etcd.crt" // for the server and for its clients
	etcdKey  = "pki/etcd.key"
)

// etcd is the store of all clusters of this process.
type etcd struct {
	programs binaries.Set
	outlive  bool
	member   *pool.Member
	process  *proc.Process
	client   *http.Client
	url      string
}

// theEtcd is the one that runs, and how many clusters use it.
var theEtcd struct {
	mu    sync.Mutex
	store *etcd
	users int
}

// acquireEtcd starts etcd for the first cluster and returns it to the others.
func acquireEtcd(ctx context.Context, in pool.Pool, programs binaries.Set, outlive bool) (*etcd, error) {
	theEtcd.mu.Lock()
	defer theEtcd.mu.Unlock()
	if theEtcd.store == nil {
		store := &etcd{programs: programs, outlive: outlive}
		if err := store.start(ctx, in); err != nil {
			return nil, errors.Join(err, store.stop())
		}
		theEtcd.store = store
	}
	if err := theEtcd.store.process.Failure(); err != nil {
		return nil, err
	}
	theEtcd.users++
	return theEtcd.store, nil
}

// release ends etcd with its last cluster; before that it only forgets what the cluster has stored.
func (e *etcd) release(prefix string) error {
	theEtcd.mu.Lock()
	defer theEtcd.mu.Unlock()
	failure := e.process.Failure()
	theEtcd.users--
	if theEtcd.users > 0 {
		return errors.Join(failure, e.forget(prefix))
	}
	theEtcd.store = nil
	return errors.Join(failure, e.stop())
}

func (e *etcd) start(ctx context.Context, in pool.Pool) error {
	var err error
	if e.member, err = in.Add(ctx, pool.Etcd, "etcd", ""); err != nil {
		return err
	}
	if err := e.makeSecrets(); err != nil {
		return err
	}
	return listen(ctx, func(ctx context.Context, port int) (*proc.Process, error) {
		e.url = fmt.Sprintf("https://127.0.0.1:%d", port)
		if err := e.run(); err != nil {
			return nil, err
		}
		return e.process, await(ctx, []*proc.Process{e.process}, e.healthy)
	})
}

func (e *etcd) stop() error {
	if e.process != nil {
		e.process.Kill()
	}
	if e.client != nil {
		e.client.CloseIdleConnections()
	}
	if e.member == nil {
		return nil
	}
	return e.member.Remove(false)
}

func (e *etcd) makeSecrets() error {
	authority, err := pki.NewAuthority("etcd")
	if err != nil {
		return err
	}
	pair, err := authority.Issue(pki.Request{User: "etcd", Hosts: []string{"127.0.0.1", "localhost"}})
	if err != nil {
		return err
	}
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority.Cert)
	e.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusted, Certificates: []tls.Certificate{certificate}},
	}}
	return writeFiles(e.member.Dir, map[string][]byte{etcdCA: authority.Cert, etcdCert: pair.Cert, etcdKey: pair.Key})
}

func (e *etcd) run() (err error) {
	e.process, err = proc.Start(proc.Spec{
		Name:    binaries.Etcd,
		Path:    e.programs.Path(binaries.Etcd),
		Args:    e.args(),
		Env:     componentEnv(e.member.Dir),
		Dir:     e.member.Dir,
		Log:     e.file("etcd.log"),
		Outlive: e.outlive,
	})
	if err != nil {
		return err
	}
	return e.member.Record(binaries.Etcd, e.process.ID())
}

func (e *etcd) args() []string {
	return []string{
		"--data-dir=" + e.file("data"),
		"--listen-client-urls=" + e.url,
		"--advertise-client-urls=" + e.url,
		"--listen-peer-urls=http://127.0.0.1:0", // there are no peers
		"--client-cert-auth",
		"--trusted-ca-file=" + e.file(etcdCA),
		"--cert-file=" + e.file(etcdCert),
		"--key-file=" + e.file(etcdKey),
		"--unsafe-no-fsync", // nothing here outlives a crash of the machine
		"--max-wals=1",
		"--max-snapshots=1",
		"--snapshot-count=5000", // entries kept in memory for peers that fall behind
		"--log-level=warn",
	}
}

func (e *etcd) file(name string) string { return filepath.Join(e.member.Dir, name) }

func (e *etcd) healthy(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+"/health", http.NoBody)
	if err != nil {
		return err
	}
	return e.do(request)
}

// forgetTimeout is ample for a store without fsync.
const forgetTimeout = 10 * time.Second

// forget deletes all keys below a prefix, through etcd's HTTP gateway: its own client would bring half of etcd along.
func (e *etcd) forget(prefix string) error {
	ctx, cancel := context.WithTimeout(context.Background(), forgetTimeout)
	defer cancel()
	first, end := []byte(prefix+"/"), []byte(prefix+"0") // "0" follows "/"
	body, err := json.Marshal(map[string][]byte{"key": first, "range_end": end})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+"/v3/kv/deleterange", bytes.NewReader(body))
	if err != nil {
		return err
	}
	if err := e.do(request); err != nil {
		return fmt.Errorf("delete %s from etcd: %w", prefix, err)
	}
	return nil
}

func (e *etcd) do(request *http.Request) error {
	response, err := e.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd answers %s: %s", response.Status, bytes.TrimSpace(body))
	}
	return nil
}
