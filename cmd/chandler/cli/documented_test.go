package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/libs/doccommand"
)

func documentedRoot(t *testing.T) *cobra.Command {
	t.Helper()
	root := newRoot(command.Streams{
		In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Now: time.Now,
		Env: func(string) (string, bool) { return "", false },
	})
	root.InitDefaultHelpCmd()
	return root
}

// parses checks that a command, its flags and the number of its arguments are there.
func parses(root *cobra.Command, words []string) error {
	c, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	if err := c.ParseFlags(rest); err != nil {
		return err
	}
	if !c.Runnable() {
		return fmt.Errorf("%s is no command", c.CommandPath())
	}
	if err := c.ValidateArgs(c.Flags().Args()); err != nil {
		return err
	}
	return c.ValidateRequiredFlags()
}

// namedInText checks that a command that a text speaks of is there, and its flags; a text need not give the arguments.
func namedInText(root *cobra.Command, words []string) error {
	c, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	c.InitDefaultHelpFlag()
	if c.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return fmt.Errorf("%s has no %s", c.CommandPath(), rest[0])
	}
	for _, w := range rest {
		name, _, _ := strings.Cut(w, "=")
		if long, is := strings.CutPrefix(name, "--"); is && c.Flag(long) == nil {
			return fmt.Errorf("%s has no flag %s", c.CommandPath(), name)
		}
		if short, is := strings.CutPrefix(name, "-"); is && len(short) == 1 && c.Flags().ShorthandLookup(short) == nil {
			return fmt.Errorf("%s has no flag %s", c.CommandPath(), name)
		}
	}
	return nil
}

// Every command that the README and the documents show or name exists, with its flags. test/e2e runs those of shell
// blocks.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	repository, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks, spans := 0, 0
	for _, file := range append(files, filepath.Join(repository, "README.md")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range doccommand.Blocks(filepath.Base(file), string(text), "chandler") {
			blocks++
			if err := parses(documentedRoot(t), c.Words); err != nil {
				t.Errorf("%s: chandler %s: %v", c.Place, c, err)
			}
		}
		for _, c := range doccommand.Spans(filepath.Base(file), string(text), "chandler") {
			spans++
			if err := namedInText(documentedRoot(t), c.Words); err != nil {
				t.Errorf("%s: chandler %s: %v", c.Place, c, err)
			}
		}
	}
	if blocks < 40 || spans < 40 {
		t.Errorf("the documents show %d commands and name %d: are they read?", blocks, spans)
	}
}

// Every command says what it does and shows how it is called, but where its line of usage says all of it; and every
// example is one that the command line takes.
func TestHelp(t *testing.T) {
	t.Parallel()
	var all func(c *cobra.Command)
	all = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			all(below)
		}
		path := c.CommandPath()
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: the short text %q: want one without a stop", path, c.Short)
		}
		for line := range strings.SplitSeq(c.Long+"\n"+c.Example, "\n") {
			if n := len([]rune(line)); n > helpWidth {
				t.Errorf("%s: help has a line of %d columns, want %d at most: %s", path, n, helpWidth, line)
			}
		}
		if !c.Runnable() || evident[path] || c.HasSubCommands() && c.Example == "" { // what groups commands shows them
			return
		}
		if c.Long == "" || c.Long == c.Short {
			t.Errorf("%s has no long text", path)
		}
		examples := doccommand.Examples(path, c.Example, "chandler")
		if len(examples) == 0 {
			t.Errorf("%s shows no example", path)
		}
		for _, e := range examples {
			if err := parses(documentedRoot(t), e.Words); err != nil {
				t.Errorf("%s: chandler %s: %v", path, e, err)
			}
			if got, _, err := documentedRoot(t).Find(e.Words); err == nil &&
				!strings.HasPrefix(got.CommandPath(), path) {
				t.Errorf("%s has an example of %s", path, got.CommandPath())
			}
		}
	}
	all(documentedRoot(t))
}

// helpWidth is what a usual terminal shows in a line without wrapping.
const helpWidth = 120

// evident commands say all in their line of usage: what they take is nothing, or one name.
var evident = map[string]bool{
	"chandler version": true,
	"chandler help":    true,
}
