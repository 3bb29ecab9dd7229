package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/libs/natsjwt"
)

// Files of a server in operator mode.
const (
	keysFile   = "keys.json"
	configFile = "nats.conf"
	agentsFile = "agents.json"
)

// writeOperatorMode writes a server in operator mode to a folder. What was written before is written anew with the same
// keys. The keys are there before anything that depends on them.
func writeOperatorMode(a *command.Env, dir, accounts string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	keys, err := natsKeys(filepath.Join(dir, keysFile))
	if err != nil {
		return err
	}
	written, err := keys.Installation(accounts)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, keysFile), err)
	}
	files := map[string]string{configFile: written.Config, agentsFile: written.Authority}
	for user, creds := range written.Creds {
		files[user+".creds"] = creds
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return a.Say("%s: %s for the server, a creds file for each service, and %s for the installer (CHANDLER_NATS_AGENTS)",
		dir, configFile, agentsFile)
}

// natsKeys are those of a file, which is made where it is missing.
func natsKeys(path string) (keys natsjwt.Keys, err error) {
	raw, err := os.ReadFile(path)
	if err == nil {
		if err := json.Unmarshal(raw, &keys); err != nil {
			return keys, command.Usagef("%s is not the file of keys that chandler keys nats --jwt has written: %v", path, err)
		}
		return keys, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return keys, err
	}
	if keys, err = natsjwt.MakeKeys(); err != nil {
		return keys, err
	}
	if raw, err = json.MarshalIndent(keys, "", "  "); err != nil {
		return keys, err
	}
	// Whole or not at all, and never over keys that another process has just made.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return keys, err
	}
	_, err = f.Write(raw)
	return keys, errors.Join(err, f.Close())
}
