// Package documents reads the documents that commands get with -f, and completes them from the command line.
package documents

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
)

// Options name the files to read, and where their documents belong.
type Options struct {
	Files     []string
	Clusters  []string
	Namespace string
}

// Flags registers --filename, --cluster and --namespace.
func Flags(c *cobra.Command, files, clusters *[]string, namespace *string) {
	c.Flags().StringSliceVarP(files, "filename", "f", nil,
		"file or folder to read, - for standard input; can be repeated")
	c.Flags().StringSliceVar(clusters, "cluster", nil, "cluster of the documents; several with commas")
	c.Flags().StringVarP(namespace, "namespace", "n", "", "namespace of documents without one")
}

// Read reads all files and completes what a document leaves to the command line.
func Read(a *command.Env, o Options) ([]olm.Document, error) {
	if len(o.Files) == 0 {
		return nil, command.Usagef("no file is given: use -f")
	}
	var all []olm.Document
	for _, f := range o.Files {
		found, err := readPath(a, f)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	olm.Complete(all)
	for i := range all {
		d := &all[i]
		if d.Fleet() {
			continue
		}
		if len(d.On(o.Clusters)) == 0 {
			return nil, command.Usagef("missing --cluster: the documents name none")
		}
		if d.Cluster != "" && len(o.Clusters) > 0 && !slices.Contains(o.Clusters, d.Cluster) {
			return nil, command.Usagef("%s: the cluster is %s, --cluster says %s", d.Where, d.Cluster,
				strings.Join(o.Clusters, ", "))
		}
		if err := place(d, o.Namespace); err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, command.Refused(errors.New("the files hold no documents"))
	}
	return all, nil
}

// place gives a document that names no namespace the one of the command line.
func place(d *olm.Document, namespace string) error {
	switch {
	case d.Namespace == "":
		d.Namespace = namespace
	case namespace != "" && namespace != d.Namespace:
		return command.Usagef("%s: the namespace is %s, --namespace says %s", d.Where, d.Namespace, namespace)
	}
	if d.Namespace == "" {
		return command.Usagef("%s: %s %s has no namespace: give one with -n", d.Where, d.Kind, d.Name)
	}
	// A config map lies where its CatalogSource does.
	if c := d.Catalog; c != nil && !c.Whole && c.Source.ConfigMap != nil {
		c.Source.ConfigMap.Namespace = d.Namespace
	}
	return nil
}

func readPath(a *command.Env, path string) ([]olm.Document, error) {
	if path == "-" {
		found, err := olm.Read(a.In, "standard input")
		return found, command.Refused(err)
	}
	files, err := expand(path)
	if err != nil {
		return nil, err
	}
	var all []olm.Document
	for _, f := range files {
		found, err := readFile(f)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func readFile(path string) (_ []olm.Document, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	found, err := olm.Read(f, path)
	return found, command.Refused(err)
}

// expand returns the file itself, or the YAML and JSON files of a folder in order of name.
func expand(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s holds no .yaml, .yml or .json file", path)
	}
	return files, nil
}
