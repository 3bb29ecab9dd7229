package executorhost_test

import (
	"bytes"
	"context"
	"testing"

	"filippo.io/age"

	"github.com/chandler-fleet/chandler/libs/bus/bustest"
	"github.com/chandler-fleet/chandler/libs/keys/reseal"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
	kubeconfigs "github.com/chandler-fleet/chandler/libs/kubeconfig"
)

// resealer is the installer's part after another key has become active.
func (e *env) resealer(entries string) *reseal.Runner {
	e.t.Helper()
	set, err := seal.ParseIdentities(entries, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	return &reseal.Runner{
		Pool: e.own, Table: reseal.ClusterCredentials(kubeconfigs.MaxBytes), Identities: set,
		Log: bustest.Log(e.t),
	}
}

func (e *env) once(r *reseal.Runner, want int) {
	e.t.Helper()
	if done, err := r.Once(e.t.Context()); err != nil || done != want {
		e.t.Fatalf("encrypted %d anew, %v; want %d", done, err, want)
	}
}

func (e *env) sealedNow(name string) (ciphertext []byte, key string) {
	e.t.Helper()
	err := e.own.QueryRow(e.t.Context(), `select ciphertext, key_id from gateway_api.cluster_credentials
		where name = $1`, name).Scan(&ciphertext, &key)
	if err != nil {
		e.t.Fatal(err)
	}
	return ciphertext, key
}

// TestKubeconfigsMoveToTheActiveKey: after a new key has become active every stored kubeconfig is encrypted to it,
// once, also where a run was killed half way; the executors that use them go on; what no key opens stays, and is not
// lost.
func TestKubeconfigsMoveToTheActiveKey(t *testing.T) {
	t.Parallel()
	e := setup(t)
	next, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	e.register("east")
	e.register("lost")
	e.credential("east", e.seal(e.identity.Recipient(), kubeconfig("one", "")))
	e.credential("lost", e.seal(stranger.Recipient(), kubeconfig("two", "")))
	e.run()
	e.next("begin east one")
	lost, _ := e.sealedNow("lost")
	both := e.resealer(next.String() + "," + e.identity.String())
	killed, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := both.Once(killed); err == nil {
		t.Error("a run that was killed reports success")
	}
	e.once(both, 1)
	e.once(both, 0)
	only := e.resealer(next.String())
	sealed, key := e.sealedNow("east")
	if _, err := only.Identities.Open(sealed, kubeconfigs.MaxBytes); err != nil ||
		key != only.Identities.Active().ID.String() {
		t.Errorf("the kubeconfig is of key %s: %v", key, err)
	}
	if now, key := e.sealedNow("lost"); !bytes.Equal(now, lost) || key != "" {
		t.Errorf("what no key opens was changed; it names key %q", key)
	}
	e.register("west") // a round of the host that sees this one has seen the above
	e.credential("west", e.seal(e.identity.Recipient(), kubeconfig("three", "")))
	e.next("begin west three") // and not: end east one
}

// TestResealingLosesARace: a kubeconfig that was replaced after it was read is not overwritten with the old one, and
// nobody but the installer may encrypt anew.
func TestResealingLosesARace(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.register("east")
	was := e.stored("east", e.seal(e.identity.Recipient(), kubeconfig("one", "")))
	e.stored("east", e.seal(e.identity.Recipient(), kubeconfig("two", "")))
	const call = `select gateway_api.reseal_cluster_credential('default', 'east', $1, '', 'x', '0123456789abcdef')`
	var done bool
	if err := e.own.QueryRow(t.Context(), call, was).Scan(&done); err != nil || done {
		t.Errorf("a credential that is there no more was replaced: %v, %v", done, err)
	}
	if err := e.gateway.QueryRow(t.Context(), call, was).Scan(&done); err == nil {
		t.Error("the gateway's role may encrypt anew")
	}
	sealed, _ := e.sealedNow("east")
	if string(sealed) == "x" {
		t.Error("the new credential is lost")
	}
}
