package archtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Prefix is what all packages of this repository begin with.
const Prefix = "github.com/chandler-fleet/chandler/"

// Package is what go list says of one package.
type Package struct {
	Dir        string   `json:"Dir"`
	ImportPath string   `json:"ImportPath"`
	Standard   bool     `json:"Standard"`
	GoFiles    []string `json:"GoFiles"`
	Imports    []string `json:"Imports"`
	Deps       []string `json:"Deps"`
	Module     *Module  `json:"Module"`
	Error      *Fault   `json:"Error"`
}

// Module is where a package comes from.
type Module struct {
	Path string `json:"Path"`
}

// Fault is why go list could not load a package.
type Fault struct {
	Err string `json:"Err"`
}

// Short is the path inside this repository, or the whole path of an outside package.
func (p Package) Short() string { return strings.TrimPrefix(p.ImportPath, Prefix) }

// Ours reports whether the package is of this repository.
func (p Package) Ours() bool { return strings.HasPrefix(p.ImportPath, Prefix) }

// Graph is every package of the workspace and everything that they import, by import path.
type Graph map[string]Package

// Load asks go list for the graph of the workspace that the working directory lies in.
func Load(ctx context.Context) (Graph, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-e", "-deps",
		"-json=Dir,ImportPath,Standard,GoFiles,Imports,Deps,Module,Error", "work")
	cmd.Dir = root
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, complaint.String())
	}
	return decode(bytes.NewReader(out))
}

func decode(r io.Reader) (Graph, error) {
	g := Graph{}
	for dec := json.NewDecoder(r); ; {
		var p Package
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return g, nil
		}
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		g[p.ImportPath] = p
	}
}

// Root is the folder of go.work above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.work above the working directory")
		}
		dir = up
	}
}
