package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/chandler-fleet/chandler/test/internal/proc"
)

// Files in the directory of a set of clusters; the clusters' own directories lie beside them.
const (
	stateFile = "state.json"
	logFile   = "daemon.log"
)

// state is what the daemon tells the other commands.
type state struct {
	Owner    proc.ID   `json:"owner"` // the daemon, or the up that is about to start it
	Count    int       `json:"count"` // of clusters asked for
	Ready    bool      `json:"ready"` // all of them work
	Error    string    `json:"error,omitempty"`
	Clusters []cluster `json:"clusters"`
}

type cluster struct {
	Name       string `json:"name"`
	Server     string `json:"server"`
	Kubeconfig string `json:"kubeconfig"` // path
	State      string `json:"state"`
}

// errUp says that there is a state already.
var errUp = errors.New("clusters are up")

// claim writes the first state of a directory; of several commands only one can do that.
func claim(dir string, s state) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(dir, stateFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return errUp
	}
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(file).Encode(s), file.Close())
}

// read returns nothing if there is no state.
func read(dir string) (*state, error) {
	path := filepath.Join(dir, stateFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &state{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

func write(dir string, s state) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	temporary := filepath.Join(dir, stateFile+".new")
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(dir, stateFile))
}

// remove removes our files, and the directory if nothing of others is in it.
func remove(dir string) error {
	for _, name := range []string{logFile, stateFile + ".new", stateFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	_ = os.Remove(dir)
	return nil
}

// show prints clusters for people, or for programs.
func show(out io.Writer, clusters []cluster, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(map[string][]cluster{"clusters": clusters})
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tSTATE\tSERVER\tKUBECONFIG")
	for _, c := range clusters {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", c.Name, c.State, c.Server, c.Kubeconfig)
	}
	return table.Flush()
}
