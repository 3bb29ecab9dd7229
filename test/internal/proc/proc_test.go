package proc_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/test/internal/proc"
)

func start(t *testing.T, script string) *proc.Process {
	t.Helper()
	p, err := proc.Start(proc.Spec{
		Name: "script", Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/usr/bin:/bin"},
		Dir: t.TempDir(), Log: filepath.Join(t.TempDir(), "log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func TestFailureShowsLog(t *testing.T) {
	p := start(t, "seq 1 40; echo the reason >&2; exit 3")
	<-p.Done()
	err := p.Failure()
	if err == nil {
		t.Fatal("no failure")
	}
	for _, want := range []string{"script ended by itself", "exit status 3", "the reason", "\n    40\n"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "\n    20\n") {
		t.Errorf("the whole log is shown: %v", err)
	}
}

func TestKillIsNoFailure(t *testing.T) {
	p := start(t, "exec sleep 600")
	if err := p.Failure(); err != nil {
		t.Errorf("while it runs: %v", err)
	}
	p.Kill()
	p.Kill()
	if err := p.Failure(); err != nil {
		t.Errorf("after kill: %v", err)
	}
	if p.ID().Alive() {
		t.Error("it is alive")
	}
}

func TestKillEndsSuspended(t *testing.T) {
	p := start(t, "exec sleep 600")
	if err := p.Suspend(); err != nil {
		t.Fatal(err)
	}
	if !p.ID().Alive() {
		t.Error("a suspended process counts as gone")
	}
	if err := p.ID().Kill(t.Context()); err != nil {
		t.Error(err)
	}
	<-p.Done()
}

func TestStartNamesMissingProgram(t *testing.T) {
	_, err := proc.Start(proc.Spec{Name: "nothing", Path: "/no/such/program", Log: filepath.Join(t.TempDir(), "log")})
	if err == nil || !strings.Contains(err.Error(), "start nothing") {
		t.Errorf("start says %v", err)
	}
}

func TestSelfIsAlive(t *testing.T) {
	self := proc.Self()
	if !self.Alive() {
		t.Error("we are gone")
	}
	self.Start++
	if self.Alive() {
		t.Error("another process with our pid counts as alive")
	}
}
