package app

import (
	"context"
	"io/fs"
	"sync"
	"testing/fstest"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/fetch"
)

// fakeSources is all sources: it holds by name what an image or a path of that name has.
type fakeSources struct {
	mu     sync.Mutex
	trees  map[string]fs.FS
	prints map[string]string // fingerprints
	faults map[string]error
	calls  map[string]int // "probe x", "open x", "bundle x"
}

func newFakeSources() *fakeSources {
	return &fakeSources{
		trees: map[string]fs.FS{}, prints: map[string]string{}, faults: map[string]error{},
		calls: map[string]int{},
	}
}

// put makes a name hold one file, with a fingerprint.
func (s *fakeSources) put(name, mark, text string) {
	s.set(name, mark, fstest.MapFS{"catalog.yaml": {Data: []byte(text)}})
}

func (s *fakeSources) set(name, mark string, tree fs.FS) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trees[name], s.prints[name] = tree, mark
	delete(s.faults, name)
}

// fail makes a name answer with an error.
func (s *fakeSources) fail(name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[name] = err
}

func (s *fakeSources) count(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[call]
}

func (s *fakeSources) get(call, name string) (*fetch.Tree, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[call+" "+name]++
	if err := s.faults[name]; err != nil {
		return nil, err
	}
	tree, there := s.trees[name]
	if !there {
		return nil, errs.New(errs.NotFound, "nothing is called %s", name)
	}
	return &fetch.Tree{FS: tree, Fingerprint: s.prints[name], Resolved: name + "@" + s.prints[name]}, nil
}

func nameOf(s source.Settings) string {
	if s.Image != "" {
		return s.Image
	}
	return s.Path
}

func (s *fakeSources) Probe(_ context.Context, _ source.Type, set source.Settings) (fetch.Probe, error) {
	t, err := s.get("probe", nameOf(set))
	if err != nil {
		return fetch.Probe{}, err
	}
	return fetch.Probe{Fingerprint: t.Fingerprint, Resolved: t.Resolved}, nil
}

func (s *fakeSources) Open(_ context.Context, _ source.Type, set source.Settings) (*fetch.Tree, error) {
	return s.get("open", nameOf(set))
}

func (s *fakeSources) Bundle(_ context.Context, image string, set source.Settings) (*fetch.Tree, error) {
	t, err := s.get("bundle", image)
	if err == nil && set.Signatures != nil {
		t.Evidence = []byte("what was signed of " + image)
	}
	return t, err
}
