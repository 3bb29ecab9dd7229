package pool

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"

	"github.com/chandler-fleet/chandler/test/internal/proc"
)

// suffix of the files that describe members.
const suffix = ".json"

// Kind says what a member is.
type Kind string

// The kinds of members.
const (
	Cluster Kind = "cluster" // a control plane
	Etcd    Kind = "etcd"    // the store behind control planes of one process
)

// Member is something that runs.
type Member struct {
	ID        string          `json:"id"`
	Kind      Kind            `json:"kind"`
	Name      string          `json:"name"`
	Holder    string          `json:"holder,omitempty"` // who took a turn for it; empty if nobody had to
	Dir       string          `json:"dir"`              // goes away with the member
	Owner     proc.ID         `json:"owner"`
	Processes []MemberProcess `json:"processes,omitempty"`

	mu   sync.Mutex
	file string
}

// MemberProcess is a process that ends with its member.
type MemberProcess struct {
	Name string `json:"name"`
	proc.ID
}

// create makes the member's directory and writes its file; the file comes first, so that nothing is ever lost.
func (m *Member) create() error {
	if err := m.save(); err != nil {
		return err
	}
	return os.MkdirAll(m.Dir, 0o700)
}

// Record adds a process. What starts between two records dies by its death signal, so the gap does no harm.
func (m *Member) Record(name string, id proc.ID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Processes = append(m.Processes, MemberProcess{Name: name, ID: id})
	return m.save()
}

// Hold gives the member to a holder that has its turn, or with "" to nobody: it runs on, and nobody waits for it.
func (m *Member) Hold(holder string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Holder = holder
	return m.save()
}

// Remove takes the member from the list. Its processes must have ended. With keepFiles its directory stays.
func (m *Member) Remove(keepFiles bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !keepFiles {
		if err := os.RemoveAll(m.Dir); err != nil {
			return err
		}
	}
	if err := os.Remove(m.file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// end kills what runs and removes what lies around.
func (m *Member) end(ctx context.Context) error {
	for _, process := range m.Processes {
		if err := process.Kill(ctx); err != nil {
			return err
		}
	}
	return m.Remove(false)
}

// save replaces the file in one step: readers of it may not hold the lock that writers of other members hold.
func (m *Member) save() error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	temporary := m.file + ".new"
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, m.file)
}
