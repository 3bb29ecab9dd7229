package dev

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeysAreMadeOnceAndKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secrets.json")
	first, err := loadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := loadKeys(path)
	if err != nil || again != first {
		t.Errorf("the second start has other keys: %v", err)
	}
	for _, v := range first.Variables() {
		if v.Value == "" {
			t.Errorf("%s is empty", v.Name)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("secrets have the mode %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadKeys(path); err == nil || !strings.Contains(err.Error(), "remove the state folder") {
		t.Errorf("a broken file: %v", err)
	}
}

func TestOneProcessPerStateFolder(t *testing.T) {
	t.Parallel()
	first := Options{State: filepath.Join(t.TempDir(), "state")}
	release, err := first.openState()
	if err != nil {
		t.Fatal(err)
	}
	second := Options{State: first.State}
	if _, err := second.openState(); err == nil || !strings.Contains(
		err.Error(), "another chandler dev uses "+first.State) {
		t.Errorf("a second process got the folder: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	release, err = second.openState()
	if err != nil {
		t.Fatalf("a folder given free cannot be taken: %v", err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

func TestATemporaryStateGoes(t *testing.T) {
	t.Parallel()
	var o Options
	release, err := o.openState()
	if err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(o.State); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", o.State, err)
	}
}
