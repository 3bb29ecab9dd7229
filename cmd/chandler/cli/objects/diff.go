package objects

import (
	"bytes"
	"context"
	"fmt"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/cmd/chandler/author"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/documents"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
)

// DiffCommand is chandler diff.
func DiffCommand(a *command.Env) *cobra.Command {
	var o documents.Options
	c := &cobra.Command{
		Use:   "diff -f FILE --cluster CLUSTER",
		Short: "Show how documents differ from what is there",
		Long: `Compares the documents of files, which are read as by chandler apply, with the objects that are there, and shows
what apply would change as a unified diff: lines with - are there, lines with + are wanted. Nothing is changed.

The status is 3 if something differs, and 0 if nothing does. The content of secrets cannot be compared, since nobody
can read it. Whether the server would take a change, and what would be planned, is answered by chandler apply
--dry-run.`,
		Example: `  chandler diff -f subscription.yaml --cluster east-1
  chandler diff -f fleet/ -R --cluster east-1,west-2`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			differs, err := ShowDiff(cmd.Context(), a, o)
			if err == nil && differs {
				err = &author.ExitError{Code: command.ExitDiffers}
			}
			return err
		},
	}
	documents.Flags(c, &o)
	return c
}

// ShowDiff writes how documents differ from what is there, and says whether any does.
func ShowDiff(ctx context.Context, a *command.Env, o documents.Options) (differs bool, err error) {
	all, err := documents.Read(a, o)
	if err != nil {
		return false, err
	}
	if err := printNotes(a, all); err != nil {
		return false, err
	}
	c, err := checkedClient(ctx, a, o, all)
	if err != nil {
		return false, err
	}
	results, err := runTasks(ctx, a, c, tasksOf(o, all), "comparing", differ)
	for _, r := range results {
		differs = differs || r.text != ""
	}
	return differs, err
}

// differ compares a task with what is there.
func differ(ctx context.Context, c *client.Client, t task) (out result) {
	found, err := t.diff(ctx, c)
	out.did, out.err = found.did, err
	switch {
	case err != nil || found.did == unchanged, found.did == alone:
		out.warnings = found.warnings
	case found.did == set:
		out.warnings = []string{"it cannot be compared: nobody can read what is there"}
	default:
		out.text, out.err = unified(t.name, found)
	}
	return out
}

// unified is a comparison as diff -u shows it.
func unified(name string, found comparison) (string, error) {
	was, nameWas := []byte(nil), "/dev/null"
	var err error
	if found.have != nil {
		nameWas = "a/" + name
		if was, err = yaml.Marshal(found.have); err != nil {
			return "", fmt.Errorf("write %s as YAML: %w", name, err)
		}
	}
	is, err := yaml.Marshal(found.want)
	if err != nil {
		return "", fmt.Errorf("write %s as YAML: %w", name, err)
	}
	// The first line is a command, which names the two once more.
	_, out, _ := bytes.Cut(diff.Diff(nameWas, was, "b/"+name, is), []byte("\n"))
	return string(bytes.TrimSuffix(out, []byte("\n"))), nil
}
