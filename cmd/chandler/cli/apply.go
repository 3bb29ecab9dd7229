package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// What apply did with a document.
const (
	created    = "created"
	configured = "configured"
	unchanged  = "unchanged"
)

type applyOptions struct {
	files     []string
	clusters  []string
	namespace string
}

func (a *app) applyCommand() *cobra.Command {
	var o applyOptions
	c := &cobra.Command{
		Use:   "apply -f FILE --cluster CLUSTER",
		Short: "Create or change what OLM's own YAML says",
		Long: `Reads Subscription, OperatorGroup and CatalogSource documents (operators.coreos.com), as YAML or
JSON, several to a file, and creates or changes them on each of the clusters. A CatalogSource is
visible on that cluster only; chandler catalog add offers one to the whole fleet.

All documents are read and checked before the first one is sent.`,
		Example: `  chandler apply -f subscription.yaml --cluster east-1
  cat *.yaml | chandler apply -f - --cluster east-1,west-2 -n ports`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.apply(cmd.Context(), o) },
	}
	fileFlags(c, &o.files, &o.clusters, &o.namespace)
	return c
}

func fileFlags(c *cobra.Command, files, clusters *[]string, namespace *string) {
	c.Flags().StringSliceVarP(files, "filename", "f", nil, "file or folder to read, - for standard input; may be given several times")
	c.Flags().StringSliceVar(clusters, "cluster", nil, "cluster that the documents are for; several with commas")
	c.Flags().StringVarP(namespace, "namespace", "n", "", "namespace of documents that name none")
}

func (a *app) apply(ctx context.Context, o applyOptions) error {
	documents, err := a.documents(o)
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	var wrong []error
	for _, cluster := range o.clusters {
		for _, d := range documents {
			name, did, err := applyDocument(ctx, c, cluster, d)
			if err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
				continue
			}
			if err := a.say("%s %s", name, did); err != nil {
				return err
			}
		}
	}
	return errors.Join(wrong...)
}

// documents reads all files and completes what a document leaves to the command line.
func (a *app) documents(o applyOptions) ([]olm.Document, error) {
	if len(o.files) == 0 {
		return nil, errors.New("say what to read with -f")
	}
	if len(o.clusters) == 0 {
		return nil, errors.New("say with --cluster which cluster the documents are for")
	}
	var all []olm.Document
	for _, f := range o.files {
		found, err := a.read(f)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	for i := range all {
		d := &all[i]
		switch {
		case d.Namespace == "":
			d.Namespace = o.namespace
		case o.namespace != "" && o.namespace != d.Namespace:
			return nil, fmt.Errorf("%s: the namespace is %s, --namespace says %s", d.Where, d.Namespace, o.namespace)
		}
		if d.Namespace == "" {
			return nil, fmt.Errorf("%s: %s %s names no namespace: say one with -n", d.Where, d.Kind, d.Name)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the files hold no documents")
	}
	return all, nil
}

func (a *app) read(path string) ([]olm.Document, error) {
	if path == "-" {
		return olm.Read(a.In, "standard input")
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
	return olm.Read(f, path)
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

func applyDocument(ctx context.Context, c *client.Client, cluster string, d olm.Document) (name, did string, err error) {
	ref := client.Ref{Cluster: cluster, Namespace: d.Namespace, Name: d.Name}
	switch {
	case d.Subscription != nil:
		did, err = applySubscription(ctx, c, ref, *d.Subscription)
		return "subscription/" + ref.String(), did, err
	case d.OperatorGroup != nil:
		did, err = applyOperatorGroup(ctx, c, ref, *d.OperatorGroup)
		return "operatorgroup/" + ref.String(), did, err
	default:
		did, err = applyCatalog(ctx, c, ref, *d.Catalog)
		return "catalog/" + ref.String(), did, err
	}
}

func applySubscription(ctx context.Context, c *client.Client, r client.Ref, want model.SubscriptionSpec) (string, error) {
	have, err := c.Subscription(ctx, r)
	if client.IsStatus(err, http.StatusNotFound) {
		_, err = c.CreateSubscription(ctx, r, want)
		return created, err
	}
	if err != nil {
		return "", err
	}
	if sameSubscription(have.Spec, want) {
		return unchanged, nil
	}
	_, err = c.ChangeSubscription(ctx, r, want)
	return configured, err
}

// sameSubscription compares what two specs mean: approval has a default, config is JSON.
func sameSubscription(a, b model.SubscriptionSpec) bool {
	a.Approval, b.Approval = or(a.Approval, "Automatic"), or(b.Approval, "Automatic")
	var x, y any
	if len(a.Config) > 0 && json.Unmarshal(a.Config, &x) != nil || len(b.Config) > 0 && json.Unmarshal(b.Config, &y) != nil {
		return false
	}
	a.Config, b.Config = nil, nil
	return reflect.DeepEqual(a, b) && reflect.DeepEqual(x, y)
}

func applyOperatorGroup(ctx context.Context, c *client.Client, r client.Ref, want model.OperatorGroupSpec) (string, error) {
	have, err := c.OperatorGroup(ctx, r)
	if client.IsStatus(err, http.StatusNotFound) {
		_, err = c.CreateOperatorGroup(ctx, r, want)
		return created, err
	}
	if err != nil {
		return "", err
	}
	if sameOperatorGroup(have.Spec, want) {
		return unchanged, nil
	}
	_, err = c.ChangeOperatorGroup(ctx, r, want)
	return configured, err
}

// sameOperatorGroup takes target namespaces as the set that they are.
func sameOperatorGroup(a, b model.OperatorGroupSpec) bool {
	sorted := func(s []string) []string { s = slices.Clone(s); slices.Sort(s); return s }
	same := slices.Equal(sorted(a.TargetNamespaces), sorted(b.TargetNamespaces))
	a.TargetNamespaces, b.TargetNamespaces = nil, nil
	a.UpgradeStrategy, b.UpgradeStrategy = or(a.UpgradeStrategy, "Default"), or(b.UpgradeStrategy, "Default")
	return same && reflect.DeepEqual(a, b)
}

func applyCatalog(ctx context.Context, c *client.Client, r client.Ref, want olm.Catalog) (string, error) {
	have, err := c.Catalog(ctx, r)
	if client.IsStatus(err, http.StatusNotFound) {
		_, err = c.AddCatalog(ctx, model.AddCatalog{Name: r.Name, Cluster: r.Cluster, Namespace: r.Namespace, Source: want.Source, Priority: want.Priority})
		return created, err
	}
	if err != nil {
		return "", err
	}
	if have.Source == want.Source && have.Priority == want.Priority {
		return unchanged, nil
	}
	_, err = c.ChangeCatalog(ctx, r, model.ChangeCatalog{Source: want.Source, Priority: want.Priority})
	return configured, err
}
