// Package handover is what the demo and its keeper tell each other, as files in the directory of the demo.
package handover

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// Namespace is where the demo's operators live on every cluster.
const Namespace = "harbour-ops"

// ClusterNames are the clusters of the demo, and FleetNames the real ones of the demo of a fleet: the first is hosted,
// the others are served by agents.
var (
	ClusterNames = []string{"east", "west"}
	FleetNames   = []string{"quay", "pier", "mole"}
)

// Files of the demo's directory.
const (
	KeeperFile   = "keeper.json"   // which process the keeper is
	StackFile    = "stack.json"    // written when the services are ready
	ClustersFile = "clusters.json" // written when the clusters work
	ProgressFile = "progress.log"  // what the keeper says meanwhile
)

// ManifestFile is what chandler cluster join-token wrote for a cluster. The keeper applies it there, and starts the
// agent.
func ManifestFile(cluster string) string { return "join-" + cluster + ".yaml" }

// Stack is a running Chandler.
type Stack struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

// Clusters are the kubeconfig files of the clusters by their names.
type Clusters map[string]string

// Write makes a file appear whole.
func Write(dir, name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return WriteText(dir, name, b)
}

// WriteText makes a file of text appear whole.
func WriteText(dir, name string, b []byte) error {
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Read reads a file, if it is there.
func Read(dir, name string, v any) (there bool, err error) {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(b, v)
}
