package testcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/chandler-fleet/chandler/test/internal/proc"
	"github.com/chandler-fleet/chandler/test/testcluster/binaries"
	"github.com/chandler-fleet/chandler/test/testcluster/internal/pool"
)

// etcd listens on a socket in a directory that only we can enter: the users of a cluster cannot reach around the API
// server, and nothing has to be encrypted. On a port with TLS it would also serve gRPC by the slower HTTP server of Go.
const (
	etcdSocket = "etcd.sock"
	maxSocket  = 107 // bytes of a path, by the kernel
)

// etcd is the store of all clusters of this process.
type etcd struct {
	programs binaries.Set
	outlive  bool
	member   *pool.Member
	process  *proc.Process
	client   *http.Client
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
		return errors.Join(failure, e.forget(context.Background(), prefix+"/"))
	}
	theEtcd.store = nil
	return errors.Join(failure, e.stop())
}

func (e *etcd) start(ctx context.Context, in pool.Pool) error {
	var err error
	if e.member, err = in.Add(ctx, pool.Etcd, "etcd", ""); err != nil {
		return err
	}
	if socket := e.file(etcdSocket); len(socket) > maxSocket {
		return fmt.Errorf("the path of the socket %s is longer than %d bytes: set TMPDIR to a shorter one", socket,
			maxSocket)
	}
	e.client = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", e.file(etcdSocket))
		},
	}}
	if err := e.run(); err != nil {
		return err
	}
	return await(ctx, []*proc.Process{e.process}, e.healthy)
}

// url is where the API server finds it.
func (e *etcd) url() string { return "unix://" + e.file(etcdSocket) }

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
		"--listen-client-urls=" + e.url(),
		"--advertise-client-urls=http://localhost:2379", // to nobody: there are no other members
		"--listen-peer-urls=http://127.0.0.1:0",         // there are no peers
		"--unsafe-no-fsync",                             // nothing here outlives a crash of the machine
		"--max-wals=1",
		"--max-snapshots=1",
		"--snapshot-count=5000", // entries kept in memory for peers that fall behind
		"--log-level=warn",
	}
}

func (e *etcd) file(name string) string { return filepath.Join(e.member.Dir, name) }

func (e *etcd) healthy(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://etcd/health", http.NoBody)
	if err != nil {
		return err
	}
	return e.do(request, nil)
}

// askTimeout is ample for a store without fsync.
const askTimeout = 10 * time.Second

// forget deletes all keys that begin with a prefix, which ends in "/".
func (e *etcd) forget(ctx context.Context, prefix string) error {
	if err := e.ask(ctx, "deleterange", below(prefix), nil); err != nil {
		return fmt.Errorf("delete %s from etcd: %w", prefix, err)
	}
	return nil
}

// remove deletes one key. Kubernetes counts on a revision of its own for each change of a key.
func (e *etcd) remove(ctx context.Context, key string) error {
	if err := e.ask(ctx, "deleterange", map[string]any{"key": []byte(key)}, nil); err != nil {
		return fmt.Errorf("delete %s from etcd: %w", key, err)
	}
	return nil
}

// put writes a key and returns the revision of that.
func (e *etcd) put(ctx context.Context, key string, value []byte) (revision int64, err error) {
	var answer struct {
		Header struct {
			Revision int64 `json:"revision,string"`
		} `json:"header"`
	}
	if err := e.ask(ctx, "put", map[string]any{"key": []byte(key), "value": value}, &answer); err != nil {
		return 0, fmt.Errorf("write %s to etcd: %w", key, err)
	}
	return answer.Header.Revision, nil
}

// list returns all keys below a prefix, which does not end in "/", as they follow after it.
func (e *etcd) list(ctx context.Context, prefix string, values bool) (stored, error) {
	var answer struct {
		KVs []struct {
			Key         []byte `json:"key"`
			Value       []byte `json:"value"`
			ModRevision int64  `json:"mod_revision,string"`
		} `json:"kvs"`
	}
	question := below(prefix + "/")
	question["keys_only"] = !values
	if err := e.ask(ctx, "range", question, &answer); err != nil {
		return nil, fmt.Errorf("list %s of etcd: %w", prefix, err)
	}
	all := make(stored, len(answer.KVs))
	for _, kv := range answer.KVs {
		all[strings.TrimPrefix(string(kv.Key), prefix)] = storedValue{value: kv.Value, revision: kv.ModRevision}
	}
	return all, nil
}

// below is the range of all keys that begin with a prefix, which ends in "/"; "0" follows that.
func below(prefix string) map[string]any {
	return map[string]any{"key": []byte(prefix), "range_end": []byte(strings.TrimSuffix(prefix, "/") + "0")}
}

// ask uses etcd's HTTP gateway: its own client would bring half of etcd along.
func (e *etcd) ask(ctx context.Context, what string, question map[string]any, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd/v3/kv/"+what, bytes.NewReader(body))
	if err != nil {
		return err
	}
	return e.do(request, answer)
}

// do decodes what etcd answers, unless answer is nil.
func (e *etcd) do(request *http.Request, answer any) error {
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
	if answer == nil {
		return nil
	}
	return json.Unmarshal(body, answer)
}
