// Package sshagent signs with Ed25519 keys that another process or a device has, over the protocol of ssh-agent:
// OpenSSH's own agent speaks it, and so do agents in front of security modules, smart cards and key services. The
// private half never comes here.
//
// The public half stands in the setting. So an agent that is away keeps nothing from starting, or from believing what
// the key signed before: what is to be signed waits.
package sshagent

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys"
)

// Prefix begins the setting of a key that an agent has; the public half in base64 follows.
const Prefix = "ssh-agent:"

// timeout bounds one question to the agent, from the connection to the answer. A security module signs in some
// milliseconds; the hub signs one message after the other.
const timeout = 5 * time.Second

// Entry is the setting's form of a key that an agent has.
func Entry(public ed25519.PublicKey) string {
	return Prefix + base64.StdEncoding.EncodeToString(public)
}

// Open returns a keys.Opener for the agent at a Unix socket. It asks the agent nothing.
func Open(socket string) keys.Opener {
	return func(name string) (crypto.Signer, bool, error) {
		half, ok := strings.CutPrefix(name, Prefix)
		if !ok {
			return nil, false, nil
		}
		public, err := base64.StdEncoding.DecodeString(half)
		if err != nil || len(public) != ed25519.PublicKeySize {
			return nil, true, errs.New(errs.Invalid, "not the public half of an Ed25519 key: want %d bytes in base64 after %q",
				ed25519.PublicKeySize, Prefix)
		}
		return &Signer{socket: socket, public: public}, true, nil
	}
}

// Signer is one key of an agent. It may be used from several goroutines: each question has a connection of its own.
type Signer struct {
	socket string
	public ed25519.PublicKey
}

// Public implements crypto.Signer.
func (s *Signer) Public() crypto.PublicKey { return s.public }

// Sign implements crypto.Signer for Ed25519 itself, which signs the message and no hash of it. An agent that is away,
// or that does not have the key, is errs.Unavailable.
func (s *Signer) Sign(_ io.Reader, message []byte, how crypto.SignerOpts) (signature []byte, err error) {
	if how.HashFunc() != crypto.Hash(0) {
		return nil, errs.New(errs.Internal, "an agent signs messages, not hashes")
	}
	err = s.ask(context.Background(), func(a agent.ExtendedAgent, key ssh.PublicKey) error {
		answer, err := a.Sign(key, message)
		if err != nil {
			return err
		}
		if answer.Format != ssh.KeyAlgoED25519 || len(answer.Blob) != ed25519.SignatureSize {
			return errors.New("the answer is not a signature of Ed25519")
		}
		signature = answer.Blob
		return nil
	})
	return signature, err
}

// Check asks whether the agent is there and has the key.
func (s *Signer) Check(ctx context.Context) error {
	return s.ask(ctx, func(a agent.ExtendedAgent, key ssh.PublicKey) error {
		list, err := a.List()
		if err != nil {
			return err
		}
		for _, k := range list {
			if bytes.Equal(k.Blob, key.Marshal()) {
				return nil
			}
		}
		return errors.New("it does not have the key, or is locked")
	})
}

func (s *Signer) ask(ctx context.Context, question func(agent.ExtendedAgent, ssh.PublicKey) error) error {
	id := keys.IDOf(keys.KindSign, s.public)
	if s.socket == "" {
		return errs.New(errs.Unavailable, "key %s is that of an agent, and the socket of the agent is not set", id)
	}
	key, err := ssh.NewPublicKey(s.public)
	if err != nil {
		return errs.Wrap(errs.Internal, err, "key %s", id)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", s.socket)
	if err != nil {
		return errs.Wrap(errs.Unavailable, err, "the agent with key %s cannot be reached", id)
	}
	defer func() { _ = conn.Close() }() // it was read as far as is needed
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return errs.Wrap(errs.Internal, err, "agent")
		}
	}
	return errs.Wrap(errs.Unavailable, question(agent.NewClient(conn), key), "the agent at %s, asked for key %s",
		s.socket, id)
}
