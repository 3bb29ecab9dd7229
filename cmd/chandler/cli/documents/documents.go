// Package documents reads the documents that commands get with -f, and completes them from the command line.
package documents

import (
	"errors"
	"fmt"
	"io/fs"
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
	Recursive bool // folders below folders are read, too
}

// Flags registers --filename, --recursive, --cluster and --namespace.
func Flags(c *cobra.Command, o *Options) {
	c.Flags().StringSliceVarP(&o.Files, "filename", "f", nil,
		"file or folder to read, - for standard input; can be repeated")
	c.Flags().BoolVarP(&o.Recursive, "recursive", "R", false, "read the folders below a folder, too")
	c.Flags().StringSliceVar(&o.Clusters, "cluster", nil, "cluster of the documents; several with commas")
	c.Flags().StringVarP(&o.Namespace, "namespace", "n", "", "namespace of documents without one")
}

// Read reads all files and completes what a document leaves to the command line.
func Read(a *command.Env, o Options) ([]olm.Document, error) {
	if len(o.Files) == 0 {
		return nil, command.Usagef("no file is given: use -f")
	}
	var all []olm.Document
	for _, f := range o.Files {
		found, err := readPath(a, f, o.Recursive)
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
		if err := fromContext(a, d, o); err != nil {
			return nil, err
		}
		if len(d.On(o.Clusters)) == 0 {
			return nil, command.Usagef("missing --cluster: neither the documents nor the context name one")
		}
		if d.Cluster != "" && len(o.Clusters) > 0 && !slices.Contains(o.Clusters, d.Cluster) {
			return nil, command.Usagef("%s: the cluster is %s, --cluster says %s", d.Where, d.Cluster,
				strings.Join(o.Clusters, ", "))
		}
		if err := place(d, o.Namespace); err != nil {
			return nil, err
		}
	}
	olm.JoinNamespaces(all)
	if len(all) == 0 {
		return nil, command.Refused(errors.New("the files hold no documents"))
	}
	return all, nil
}

// fromContext completes a document by the environment and the current context, as kubectl does, where neither it nor a
// flag says where it belongs.
func fromContext(a *command.Env, d *olm.Document, o Options) error {
	if len(d.On(o.Clusters)) > 0 && d.Namespace+o.Namespace != "" {
		return nil
	}
	s, err := a.InContext(command.Scope{Cluster: d.Cluster, Namespace: d.Namespace})
	if err != nil {
		return err
	}
	if len(o.Clusters) == 0 {
		d.Cluster = s.Cluster
	}
	if o.Namespace == "" {
		d.Namespace = s.Namespace
	}
	return nil
}

// place gives a document that names no namespace the one of the command line.
func place(d *olm.Document, namespace string) error {
	switch {
	case d.NamespaceLabels != nil, d.CopiedCSVs != "": // a Namespace and an OLMConfig are in none
		return nil
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

func readPath(a *command.Env, path string, recursive bool) ([]olm.Document, error) {
	if path == "-" {
		found, err := olm.Read(a.In, "standard input")
		return found, command.Refused(err)
	}
	files, err := expand(path, recursive)
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

// expand returns the file itself, or the YAML and JSON files of a folder in order of name, with those of the folders
// below it where it is recursive. Hidden folders are passed over: that of git, and the copies that the kubelet keeps of
// a mounted ConfigMap. A symbolic link below is not followed: it may lead back.
func expand(path string, recursive bool) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	root := filepath.Clean(path)
	// The separator has a link to a folder followed, if it is what is named itself.
	err = filepath.WalkDir(path+string(filepath.Separator), func(at string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && filepath.Clean(at) != root && (!recursive || strings.HasPrefix(e.Name(), ".")):
			return fs.SkipDir
		case !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(at)):
			files = append(files, at)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s holds no .yaml, .yml or .json file", path)
	}
	return files, nil
}
