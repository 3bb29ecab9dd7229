// Package ageplugin decrypts by keys that another program has, over the plugin protocol of age: a program
// age-plugin-NAME on the PATH speaks to a security module, a smart card or a key service. The private half never comes
// here; for each thing that is decrypted the plugin opens one file key.
package ageplugin

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"filippo.io/age"
	"filippo.io/age/plugin"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
)

const (
	// prefix begins an identity of a plugin.
	prefix = "AGE-PLUGIN-"
	// separator stands between the identity and the public key: neither has it.
	separator = ":"
	// timeout bounds one use of a plugin. One that waits for a finger on a device is not of use to a service.
	timeout = 10 * time.Second
	// again is the wait after a plugin failed, in which it is not asked: a service has many things to decrypt, and each
	// use starts a program.
	again = 5 * time.Second
)

// Open is a seal.Opener. An identity is AGE-PLUGIN-NAME-1…:age1…, with the public key that things are encrypted to:
// age1… or age1tag1…, for which nobody but who decrypts needs the plugin. Open starts no program.
func Open(name string) (seal.Identity, bool, error) {
	if !strings.HasPrefix(name, prefix) {
		return seal.Identity{}, false, nil
	}
	identity, public, ok := strings.Cut(name, separator)
	if !ok {
		return seal.Identity{}, true, errs.New(errs.Invalid,
			"the identity of a plugin has no public key: want AGE-PLUGIN-NAME-1…%sage1…", separator)
	}
	// What it asks of a person is refused: nobody is there.
	inner, err := plugin.NewIdentity(identity, &plugin.ClientUI{})
	if err != nil {
		return seal.Identity{}, true, errs.New(errs.Invalid, "not the identity of a plugin: want AGE-PLUGIN-NAME-1…%sage1…",
			separator)
	}
	recipient, err := seal.ParseRecipient(public)
	if err != nil {
		return seal.Identity{}, true, err
	}
	return seal.Identity{Recipient: recipient, Identity: &Identity{inner: inner, now: time.Now}}, true, nil
}

// Identity is one key of a plugin. It may be used from several goroutines, which wait for each other: a device does one
// thing at a time.
type Identity struct {
	inner *plugin.Identity
	now   func() time.Time

	using sync.Mutex // a program of the plugin runs

	mu     sync.Mutex
	failed error // of the last use
	since  time.Time
}

// answer is what a plugin made of a file key.
type answer struct {
	fileKey []byte
	err     error
}

// Unwrap implements age.Identity. A plugin that is not there, fails or says nothing is errs.Unavailable, and is asked
// again after some seconds. One that says that it has no key for these stanzas is age.ErrIncorrectIdentity.
func (i *Identity) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	if err := i.resting(); err != nil {
		return nil, err
	}
	done := make(chan answer, 1)
	go func() {
		i.using.Lock() // one that hangs keeps others from being started
		defer i.using.Unlock()
		if err := i.resting(); err != nil {
			done <- answer{err: err}
			return
		}
		key, err := i.inner.Unwrap(stanzas)
		done <- answer{fileKey: key, err: i.note(err)}
	}()
	late := time.NewTimer(timeout)
	defer late.Stop()
	select {
	case a := <-done:
		return a.fileKey, a.err
	case <-late.C:
		return nil, i.note(errs.New(errs.Unavailable, "age-plugin-%s has not answered within %s", i.inner.Name(), timeout))
	}
}

// note keeps why a use failed, nil where it did not, and returns it as something that passes.
func (i *Identity) note(err error) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err == nil || errors.Is(err, age.ErrIncorrectIdentity) {
		i.failed = nil
		return err
	}
	i.failed = errs.Wrap(errs.Unavailable, err, "age-plugin-%s", i.inner.Name())
	i.since = i.now()
	return i.failed
}

// resting is why the plugin is not asked just now, nil where it is.
func (i *Identity) resting() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.failed != nil && i.now().Sub(i.since) < again {
		return i.failed
	}
	return nil
}

// Check is why the last use failed, nil where it did not. It starts no program.
func (i *Identity) Check(context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.failed
}
