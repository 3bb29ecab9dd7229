package admin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/keys"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// rotation are the commands that replace a key of a file of settings, step by step. docs/howto/rotate-keys.md has the
// order; none of them changes a running service.
func rotation(a *command.Env) []*cobra.Command {
	return []*cobra.Command{keysListCommand(a), keysAddCommand(a), keysActivateCommand(a), keysRetireCommand(a)}
}

const purposesHelp = "The purposes are grant, credentials, catalog-credentials, hook, configuration, source, annotation and\n" +
	"reason."

func fileFlag(c *cobra.Command, file *string) {
	c.Flags().StringVar(file, "file", ".env", "environment file with the keys")
}

func keysListCommand(a *command.Env) *cobra.Command {
	var file string
	var o printer.Output
	c := &cobra.Command{
		Use: "list", Short: "List the keys of a file, and what uses each", Args: cobra.NoArgs,
		Long: `Lists the keys of a file of settings by their ids, and how much of the running installation uses each. Secrets
are not shown. A key that the installation uses and that is not in the file is listed, too: put it back.`,
		Example: "  chandler keys list --file .env",
		RunE: a.Run(func(ctx context.Context, c *client.Client, _ []string) error {
			f, err := openKeys(file)
			if err != nil {
				return err
			}
			entries, err := f.List()
			if err != nil {
				return err
			}
			uses, err := c.KeyUses(ctx)
			return printer.List(a, &o, printer.Table{
				Plural: "keys", Columns: printer.Columns("Purpose", "Key", "State", "Uses"),
			}, joinUses(entries, uses), err, func(k keyRow) printer.Item {
				return printer.Item{Name: "key/" + k.Key, Value: k, Cells: []any{
					string(k.Purpose), printer.Or(k.Key, printer.None), k.State, k.Uses,
				}}
			})
		}),
	}
	fileFlag(c, &file)
	o.Flags(c)
	return c
}

// keyRow is one key as it is listed.
type keyRow struct {
	Purpose keys.Purpose `json:"purpose"`
	Key     string       `json:"key"`
	State   string       `json:"state"` // Active, Accepted, Missing
	Uses    int64        `json:"uses"`
}

func joinUses(entries []keys.Entry, uses []model.KeyUse) []keyRow {
	rows := make([]keyRow, 0, len(entries))
	at := map[[2]string]int{}
	for _, e := range entries {
		state := "Accepted"
		if e.Active {
			state = "Active"
		}
		at[[2]string{string(e.Purpose), e.Key}] = len(rows)
		rows = append(rows, keyRow{Purpose: e.Purpose, Key: e.Key, State: state})
	}
	for _, u := range uses {
		if i, ok := at[[2]string{u.Purpose, u.Key}]; ok {
			rows[i].Uses = u.Uses
			continue
		}
		rows = append(rows, keyRow{Purpose: keys.Purpose(u.Purpose), Key: u.Key, State: "Missing", Uses: u.Uses})
	}
	return rows
}

func keysAddCommand(a *command.Env) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "add PURPOSE", Short: "Make a key that is accepted and not active yet", Args: command.RequireArgs(1),
		Long: "Makes a key and puts it behind the others of its purpose in a file of settings. Restart the services with\n" +
			"the file before the key is activated.\n\n" + purposesHelp,
		Example: "  chandler keys add grant --file .env",
		RunE: func(_ *cobra.Command, args []string) error {
			var id string
			err := changeKeys(file, func(f *keys.File) (err error) {
				id, err = f.Add(keys.Purpose(args[0]))
				return err
			})
			if err != nil {
				return err
			}
			return a.Say("%s", id)
		},
	}
	fileFlag(c, &file)
	return c
}

func keysActivateCommand(a *command.Env) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "activate PURPOSE KEY", Short: "Make new things with a key", Args: command.RequireArgs(2),
		Long: "Puts a key in front of the others of its purpose. Every service has to accept it before: restart them all\n" +
			"between chandler keys add and this, and again afterwards.\n\n" + purposesHelp,
		Example: "  chandler keys activate grant 3f6a1c0e9b2d4875 --file .env",
		RunE: func(_ *cobra.Command, args []string) error {
			err := changeKeys(file, func(f *keys.File) error { return f.Activate(keys.Purpose(args[0]), args[1]) })
			if err != nil {
				return err
			}
			return a.Say("key/%s activated", args[1])
		},
	}
	fileFlag(c, &file)
	return c
}

func keysRetireCommand(a *command.Env) *cobra.Command {
	var file string
	var force bool
	c := &cobra.Command{
		Use: "retire PURPOSE KEY", Short: "Take a key out that nothing uses any more", Args: command.RequireArgs(2),
		Long: `Takes a key out of a file of settings, if the running installation says that nothing uses it. What is encrypted to
a key that was taken out cannot be read any more; what it signed is refused.

` + purposesHelp,
		Example: "  chandler keys retire grant 8c1f00b2a97e6d54 --file .env",
		RunE: a.Run(func(ctx context.Context, c *client.Client, args []string) error {
			purpose, id := keys.Purpose(args[0]), args[1]
			if !force {
				uses, err := c.KeyUses(ctx)
				if err != nil {
					return fmt.Errorf("cannot ask what uses the key (--force takes it out all the same): %w", err)
				}
				if err := unused(purpose, id, uses); err != nil {
					return err
				}
			}
			if err := changeKeys(file, func(f *keys.File) error { return f.Retire(purpose, id) }); err != nil {
				return err
			}
			return a.Say("key/%s retired", id)
		}),
	}
	fileFlag(c, &file)
	c.Flags().BoolVar(&force, "force", false, "even if something uses it, or nobody can say")
	return c
}

// sealedAnew is how uses of keys of bodies end.
const sealedAnew = ": the gateway seals them by its active key within a minute"

// needs says in words what the uses of a purpose are, and how they end.
var needs = map[keys.Purpose]string{ //nolint:gochecknoglobals // a table
	keys.Grant: "namespaces have plans, messages or step logs that it signed: they are signed anew after all installers " +
		"were restarted with another active key, and step logs end with their plans",
	keys.Credentials: "kubeconfigs are encrypted to it: the installer encrypts them to its active key within a minute",
	keys.CatalogCredentials: "credentials of catalogs are encrypted to it: the catalog-indexer encrypts them to its active " +
		"key within a minute",
	keys.Configuration: "configurations of subscriptions are sealed by it" + sealedAnew,
	keys.Source:        "sources of catalogs are sealed by it" + sealedAnew,
	keys.Annotation:    "annotations are sealed by it" + sealedAnew,
	keys.Reason:        "reasons of approvers and previews are sealed by it" + sealedAnew,
	keys.Hook:          "hooks of catalogs have secrets that are derived from it: give each a new one with chandler catalog hook make",
}

func unused(p keys.Purpose, id string, uses []model.KeyUse) error {
	for _, u := range uses {
		if u.Purpose != string(p) || u.Uses == 0 {
			continue
		}
		if u.Key == id {
			return fmt.Errorf("key %s of %s is in use, %d times: %s", id, p, u.Uses, needs[p])
		}
		if u.Key == "" {
			return fmt.Errorf("%d uses of %s do not say by which key, which may be %s: %s", u.Uses, p, id, needs[p])
		}
	}
	return nil
}

func openKeys(file string) (*keys.File, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("file of keys: %w", err)
	}
	f, err := keys.ParseFile(raw)
	if err != nil {
		return nil, fmt.Errorf("file of keys %s: %w", file, err)
	}
	return f, nil
}

// changeKeys changes a file as a whole or not at all: a key that is lost half way is lost for good. Only its owner can
// read what is written.
func changeKeys(file string, change func(*keys.File) error) (err error) {
	f, err := openKeys(file)
	if err != nil {
		return err
	}
	if err := change(f); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".keys-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	_, err = tmp.Write(f.Bytes())
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}
