package dev

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/chandler-fleet/chandler/cmd/chandler/keys"
)

// loadKeys makes the secrets at the first start and keeps them, so that stored kubeconfigs can be
// opened again.
func loadKeys(path string) (k keys.Keys, err error) {
	raw, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return makeKeys(path)
	case err != nil:
		return k, err
	}
	if err := json.Unmarshal(raw, &k); err != nil {
		return k, fmt.Errorf("%s cannot be read; remove the state folder to start afresh: %w", path, err)
	}
	k, added, err := k.Complete()
	if err != nil || !added {
		return k, err
	}
	return k, save(path, k)
}

func makeKeys(path string) (keys.Keys, error) {
	k, err := keys.Make()
	if err != nil {
		return k, err
	}
	return k, save(path, k)
}

func save(path string, k keys.Keys) error {
	raw, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o600)
}
