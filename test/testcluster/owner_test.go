package testcluster

import (
	"errors"
	"os"
	"testing"
)

func TestProcessesDieWithTheirOwner(t *testing.T) {
	ownPool(t)
	told, kill := startChild(t, childBound)
	kill()
	for _, id := range told.Processes {
		if err := id.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestStartReapsDeadOwners(t *testing.T) {
	ownPool(t)
	told, kill := startChild(t, childOutlive)
	kill()
	for _, id := range told.Processes {
		if !id.Alive() {
			t.Errorf("process %v is gone already: the test tests nothing", id)
		}
	}
	c, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range told.Processes {
		if id.Alive() {
			t.Errorf("process %v is alive", id)
		}
	}
	if _, err := os.Stat(told.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there (%v)", told.Dir, err)
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
}
