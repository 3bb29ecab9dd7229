package sshagent_test

import (
	"crypto/ed25519"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh/agent"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/keys/sshagent"
)

// agentProcess is OpenSSH's agent.
func agentProcess(t *testing.T) (socket string, client agent.ExtendedAgent, stop func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket = filepath.Join(dir, "s")
	cmd := exec.CommandContext(t.Context(), "ssh-agent", "-D", "-a", socket)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start ssh-agent (Debian: openssh-client): %v", err)
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(stop)
	if _, err := out.Read(make([]byte, 1)); err != nil { // it says where it listens when it does
		t.Fatal(err)
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return socket, agent.NewClient(conn), stop
}

// TestAgentSigns: with OpenSSH's agent, a set of keys signs by the agent's key, and what it signs is believed by who
// has the public half; an agent that is locked, lacks the key, or is away says so as something that passes; the set
// is parsed without it.
func TestAgentSigns(t *testing.T) {
	t.Parallel()
	socket, client, stop := agentProcess(t)
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := keys.ParseSigning(sshagent.Entry(public), sshagent.Open(socket))
	if err != nil {
		t.Fatal(err)
	}
	signer, ok := set.Active.(*sshagent.Signer)
	if !ok {
		t.Fatalf("the active key is a %T", set.Active)
	}
	fails := func(when, says string) {
		t.Helper()
		_, err := keys.Sign(set.Active, []byte("grant"))
		for what, err := range map[string]error{"sign": err, "check": signer.Check(t.Context())} {
			if !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s, %s: %v, want what is unavailable and says %q", when, what, err, says)
			}
		}
	}
	fails("without the key", "key "+set.ActiveID().String())
	if err := client.Add(agent.AddedKey{PrivateKey: private}); err != nil {
		t.Fatal(err)
	}
	signature, err := keys.Sign(set.Active, []byte("grant"))
	if err != nil || !set.Accepted.Verify([]byte("grant"), signature) ||
		set.Accepted.Verify([]byte("grants"), signature) {
		t.Errorf("signed %x: %v", signature, err)
	}
	if err := signer.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if err := client.Lock([]byte("secret")); err != nil {
		t.Fatal(err)
	}
	fails("locked", "key "+set.ActiveID().String())
	if err := client.Unlock([]byte("secret")); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Sign(set.Active, []byte("grant")); err != nil {
		t.Errorf("unlocked: %v", err)
	}
	stop()
	fails("away", "cannot be reached")
	if !set.Accepted.Verify([]byte("grant"), signature) {
		t.Error("what was signed is not believed while the agent is away")
	}
	for _, bad := range []string{sshagent.Prefix, sshagent.Prefix + "AAAA", sshagent.Prefix + "%"} {
		if _, err := keys.ParseSigning(bad, sshagent.Open(socket)); !errs.Is(err, errs.Invalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestSilentAgent: an agent that takes connections and answers nothing costs a bounded time.
func TestSilentAgent(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "agent") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := keys.ParseSigning(sshagent.Entry(public), sshagent.Open(socket))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Sign(set.Active, []byte("grant")); !errs.Is(err, errs.Unavailable) {
		t.Errorf("signed by an agent that says nothing: %v", err)
	}
}
