// Package manual writes what the help of all commands says as pages: Markdown for the documents, and man pages.
package manual

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
)

const (
	// Index is the page of the command chandler itself, which a browser shows for the folder.
	Index = "README.md"
	// section of the manual: commands of users.
	section = "1"
	// generated begins every page of Markdown, so that nobody edits one.
	generated = "<!-- Generated from the help of the commands by make generate; do not edit. -->\n\n"
)

// Pages are the pages of Markdown by the names of their files: one for each command below the root, with those below
// it.
func Pages(root *cobra.Command) (map[string][]byte, error) {
	plainly(root)
	index, err := page(root, false)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{Index: index}
	for _, c := range root.Commands() {
		if !shown(c) {
			continue
		}
		if out[c.Name()+".md"], err = page(c, true); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// shown are commands that have a page: not those that are hidden or only a topic of the help.
func shown(c *cobra.Command) bool { return c.IsAvailableCommand() && !c.IsAdditionalHelpTopicCommand() }

// plainly has pages say nothing of the day on which they were made.
func plainly(c *cobra.Command) {
	c.DisableAutoGenTag = true
	for _, below := range c.Commands() {
		plainly(below)
	}
}

// page is the page of a command, and of those below it.
func page(c *cobra.Command, below bool) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(generated)
	err := sections(&b, c, below)
	return append(bytes.TrimRight(b.Bytes(), "\n"), '\n'), err
}

func sections(b *bytes.Buffer, c *cobra.Command, below bool) error {
	if err := doc.GenMarkdownCustom(c, b, target); err != nil {
		return fmt.Errorf("page of %s: %w", c.CommandPath(), err)
	}
	if !below {
		return nil
	}
	for _, sub := range c.Commands() {
		if !shown(sub) {
			continue
		}
		b.WriteString("\n")
		if err := sections(b, sub, true); err != nil {
			return err
		}
	}
	return nil
}

// target is where the page of a command is, for cobra's name of its file: chandler_config_view.md is a part of
// config.md.
func target(file string) string {
	names := strings.Split(strings.TrimSuffix(file, ".md"), "_")
	switch len(names) {
	case 1:
		return Index
	case 2:
		return names[1] + ".md"
	}
	return names[1] + ".md#" + strings.Join(names, "-")
}

// Command is chandler man.
func Command(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write the man pages of all commands into a folder", Args: command.RequireArgs(1),
		Long: `Writes a man page for each command into a folder, which is made if it is missing. man finds them in a folder man1 that
is beside the others of MANPATH.`,
		Example: "  chandler man ~/.local/share/man/man1",
		RunE:    func(cmd *cobra.Command, args []string) error { return write(a, cmd.Root(), args[0]) },
	}
}

// folderMode is that of folders that everybody may read, as those of man are.
const folderMode = 0o755

// sourceDate is the variable that names the time of a source, in seconds since 1970, to what is built from it; whoever
// builds the same source again gets the same (reproducible-builds.org).
const sourceDate = "SOURCE_DATE_EPOCH"

// pageDate is what the pages say that they are of: of the source where its time is known, else of now.
func pageDate(a *command.Env) (time.Time, error) {
	text, ok := a.Env(sourceDate)
	if !ok || text == "" {
		return a.Now().UTC(), nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, command.Usagef("%s is %q; it must be a number of seconds since 1970", sourceDate, text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

func write(a *command.Env, root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return err
	}
	plainly(root)
	date, err := pageDate(a)
	if err != nil {
		return err
	}
	header := &doc.GenManHeader{Section: section, Source: "Chandler " + root.Version, Manual: "Chandler", Date: &date}
	if err := doc.GenManTree(root, header, dir); err != nil {
		return fmt.Errorf("write the man pages: %w", err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, root.Name()+"*."+section))
	if err != nil {
		return err
	}
	return a.Say("%s written to %s", printer.Plural(len(pages), "page"), dir)
}
