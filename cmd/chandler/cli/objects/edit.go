package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
)

// editHead stands above what is edited.
const editHead = `# Edit the object, save, and leave the editor. Lines that begin with # are ignored. Without a change nothing is
# done. What Chandler observed, such as the status, is not taken from here.
`

// EditCommand is chandler edit.
func EditCommand(a *command.Env) *cobra.Command {
	var s command.Scope
	c := &cobra.Command{
		Use:   "edit (KIND NAME | KIND/NAME)",
		Short: "Change an object in an editor",
		Long: `Opens an object as YAML in the editor that CHANDLER_EDITOR, EDITOR or VISUAL names (vi where none does), and applies
what was saved. If somebody else changes the object meanwhile, nothing is done, and what was written is kept in a file
whose name is told; so it is if Chandler refuses it.`,
		Example: `  chandler edit sub/east-1/ports/tidegauge
  EDITOR='code --wait' chandler edit approvalpolicy production`,
		Args: command.RequireArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := kinds.ParseTarget(a, s, args)
			if err != nil {
				return err
			}
			if len(t.Refs) != 1 {
				return command.Usagef("missing name of the %s", t.Kind.Singular())
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			return edit(cmd.Context(), a, c, t.Kind, t.Refs[0])
		},
	}
	s.Flags(c)
	return c
}

func edit(ctx context.Context, a *command.Env, c *client.Client, k kinds.Kind, ref client.Ref) error {
	it, text, tag, err := whole(ctx, c, k, ref)
	if err != nil {
		return err
	}
	before := append([]byte(editHead), text...)
	path, err := keepEdit(before)
	if err != nil {
		return err
	}
	after, err := editFile(ctx, a, path)
	if err != nil {
		return fmt.Errorf("%w; the file is %s", err, path)
	}
	if bytes.Equal(before, after) {
		if err := os.Remove(path); err != nil {
			return err
		}
		return a.Say("Edit cancelled, no changes made.")
	}
	if tag == "" { // the API compares nothing: what was read is compared here
		_, now, _, err := whole(ctx, c, k, ref)
		if err == nil && !bytes.Equal(now, text) {
			err = &client.Problem{Status: http.StatusPreconditionFailed}
		}
		if err != nil {
			return editFailed(it.Name, path, err)
		}
	}
	r, err := replaceBy(ctx, c, it.Name, after, tag)
	if err != nil {
		return editFailed(it.Name, path, err)
	}
	for _, w := range r.warnings {
		if _, err := fmt.Fprintln(a.Err, "warning:", plain.Text(w)); err != nil {
			return err
		}
	}
	return errors.Join(a.Say("%s %s", it.Name, strings.Replace(r.did, configured, "edited", 1)), os.Remove(path))
}

func editFailed(name, path string, err error) error {
	if client.IsStatus(err, http.StatusPreconditionFailed) {
		return command.Refusedf("%s was changed by somebody else meanwhile, and nothing was done: what you wrote is in %s",
			name, path)
	}
	return fmt.Errorf("%w; what you wrote is in %s", err, path)
}

// keepEdit writes what is edited into a file that is for the user alone.
func keepEdit(text []byte) (string, error) {
	f, err := os.CreateTemp("", "chandler-edit-*.yaml")
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	return f.Name(), errors.Join(err, f.Close())
}

// editFile runs the editor on the terminal itself, which it draws on.
func editFile(ctx context.Context, a *command.Env, path string) ([]byte, error) {
	words := []string{"vi"}
	for _, name := range []string{"CHANDLER_EDITOR", "EDITOR", "VISUAL"} {
		if value, _ := a.Env(name); strings.TrimSpace(value) != "" {
			words = strings.Fields(value)
			break
		}
	}
	c := exec.CommandContext(ctx, words[0], append(words[1:], path)...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("the editor %s: %w", words[0], err)
	}
	return os.ReadFile(path)
}
