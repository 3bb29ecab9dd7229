package author

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/author/edit"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/fbc"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
)

// edges are the flags that say how an entry follows others (R-GRA-3).
type edgeFlags struct {
	replaces  string
	skips     []string
	skipRange string
}

func (e *edgeFlags) flags(c *cobra.Command) {
	c.Flags().StringVar(&e.replaces, "replaces", "",
		`what the entry replaces (default: the head of the channel; "" for nothing)`)
	c.Flags().StringSliceVar(&e.skips, "skips", nil,
		"what the entry also takes over from, and nobody shall install any more")
	c.Flags().StringVar(&e.skipRange, "skip-range", "",
		"versions that the entry takes over from, such as '>=1.0.0 <1.2.0'")
}

func (t *tool) addEntryCommand() *cobra.Command {
	var e edgeFlags
	var pkg string
	c := &cobra.Command{
		Use:   "add-channel-entry DIR BUNDLE --channel CHANNEL",
		Short: "Add a bundle of a catalog directory to a channel",
		Long: `Adds an entry for a bundle that the directory holds, and makes the channel where there is none. The file
of the channel is changed in place, every other document of it stays byte by byte, and nothing is written
where the catalog would have an error that it has not now.`,
		Example: "  chandler catalog add-channel-entry ./catalog tidegauge.v1.2.1 --channel steady --skips " +
			"tidegauge.v1.1.0",
		Args: cobra.ExactArgs(2),
	}
	channel := c.Flags().String("channel", "", "the channel")
	c.RunE = func(c *cobra.Command, args []string) error {
		if *channel == "" {
			return errors.New("say with --channel which channel the bundle joins")
		}
		d, err := t.sources.openDirectory(c.Context(), args[0])
		if err != nil {
			return err
		}
		p, err := d.owner(args[1], pkg)
		if err != nil {
			return err
		}
		entry := catalog.Entry{Name: args[1], Replaces: e.replaces, Skips: e.skips, SkipRange: e.skipRange}
		if !c.Flags().Changed("replaces") {
			entry.Replaces = d.head(p, *channel)
		}
		return t.addEntry(c.Context(), d, p, *channel, entry)
	}
	c.Flags().StringVar(&pkg, "package", "", "package of the bundle, where several have one of that name")
	e.flags(c)
	return c
}

func (t *tool) promoteCommand() *cobra.Command {
	var e edgeFlags
	var pkg, to string
	c := &cobra.Command{
		Use:   "promote DIR BUNDLE --to CHANNEL",
		Short: "Add a bundle that is in one channel to another one",
		Long: `Adds a bundle that is an entry of some channel to another channel of its package (R-CAT-65). It replaces
the head there, and skips what it skips where it came from. A bundle that is older than that head is
refused, unless --replaces says where it belongs.

The file is changed as by add-channel-entry.`,
		Example: "  chandler catalog promote ./catalog tidegauge.v1.2.1 --to steady",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if to == "" {
				return errors.New("say with --to which channel the bundle joins")
			}
			d, err := t.sources.openDirectory(c.Context(), args[0])
			if err != nil {
				return err
			}
			p, err := d.owner(args[1], pkg)
			if err != nil {
				return err
			}
			entry, err := d.promoted(p, args[1], to, c.Flags().Changed("replaces"))
			if err != nil {
				return err
			}
			if c.Flags().Changed("replaces") {
				entry.Replaces = e.replaces
			}
			if c.Flags().Changed("skips") {
				entry.Skips = e.skips
			}
			if c.Flags().Changed("skip-range") {
				entry.SkipRange = e.skipRange
			}
			return t.addEntry(c.Context(), d, p, to, entry)
		},
	}
	c.Flags().StringVar(&to, "to", "", "the channel")
	c.Flags().StringVar(&pkg, "package", "", "package of the bundle, where several have one of that name")
	e.flags(c)
	return c
}

// directory is a catalog on disk that is edited.
type directory struct {
	path     string
	fs       fs.FS
	findings catalog.Findings
	docs     []load.Document // without the documents of bundles, whose Raw is dropped
}

func (t *sources) openDirectory(ctx context.Context, path string) (*directory, error) {
	st, err := os.Stat(path)
	if err != nil || !st.IsDir() {
		return nil, fmt.Errorf("%s is no directory; documents are changed in place, so a directory it must be", path)
	}
	d := &directory{path: path, fs: os.DirFS(path)}
	_, err = load.Visit(d.fs, func(doc load.Document) error {
		if doc.Schema == catalog.SchemaBundle {
			doc.Raw = nil
		}
		if doc.Bundle {
			sub, err := fs.Sub(d.fs, doc.File)
			if err != nil {
				return err
			}
			b, _ := load.ReadBundle(sub, nil, "") // what is wrong with it is told by the load
			doc.Schema, doc.Package, doc.Name = catalog.SchemaBundle, b.Package, b.Bundle.Name
		}
		d.docs = append(d.docs, doc)
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	c, err := load.Load(d.fs, load.Options{Stop: ctx.Done()})
	if err != nil {
		return nil, err
	}
	d.findings = c.Findings
	return d, nil
}

// owner finds the package of a bundle.
func (d *directory) owner(bundle, pkg string) (string, error) {
	var owners []string
	for _, doc := range d.docs {
		if doc.Schema == catalog.SchemaBundle && doc.Name == bundle && !slices.Contains(owners, doc.Package) {
			owners = append(owners, doc.Package)
		}
	}
	switch {
	case len(owners) == 0:
		return "", fmt.Errorf("%s holds no bundle %s; render it into the directory first", d.path, bundle)
	case pkg != "" && !slices.Contains(owners, pkg):
		return "", fmt.Errorf("package %s has no bundle %s; %s has", pkg, bundle, strings.Join(owners, ", "))
	case pkg == "" && len(owners) > 1:
		return "", fmt.Errorf("packages %s have a bundle %s; say which with --package", strings.Join(owners, ", "),
			bundle)
	case pkg == "":
		pkg = owners[0]
	}
	return pkg, nil
}

func (d *directory) channels(pkg string) []load.Document {
	return slices.DeleteFunc(slices.Clone(d.docs), func(doc load.Document) bool {
		return doc.Schema != catalog.SchemaChannel || doc.Package != pkg
	})
}

// channelOf decodes a channel. One that does not have its form has no entries, which the load tells.
func channelOf(doc load.Document) catalog.Channel {
	var c catalog.Channel
	if json.Unmarshal(doc.Raw, &c) != nil {
		return catalog.Channel{Name: doc.Name}
	}
	return c
}

// channel returns a channel of a package as it is written.
func (d *directory) channel(pkg, name string) (catalog.Channel, bool) {
	for _, doc := range d.channels(pkg) {
		if doc.Name == name {
			return channelOf(doc), true
		}
	}
	return catalog.Channel{}, false
}

// head is the one head of a channel, "" where there is none or several.
func (d *directory) head(pkg, channel string) string {
	c, _ := d.channel(pkg, channel)
	if heads := catalog.Heads(c); len(heads) == 1 {
		return heads[0]
	}
	return ""
}

// promoted is the entry that a bundle becomes in another channel.
func (d *directory) promoted(pkg, bundle, to string, anywhere bool) (catalog.Entry, error) {
	var from catalog.Entry
	var in []string
	for _, doc := range d.channels(pkg) {
		for _, e := range channelOf(doc).Entries {
			if e.Name == bundle {
				in = append(in, doc.Name)
				from = e
			}
		}
	}
	if len(in) == 0 {
		return from, fmt.Errorf("%s is in no channel of package %s yet; use chandler catalog add-channel-entry", bundle,
			pkg)
	}
	from.Replaces = d.head(pkg, to)
	if from.Replaces == "" || anywhere {
		return from, nil
	}
	from.Skips = slices.DeleteFunc(slices.Clone(from.Skips), func(s string) bool { return s == from.Replaces })
	version := d.versions(pkg)
	old, errOld := semver.Parse(version[from.Replaces])
	own, errOwn := semver.Parse(version[bundle])
	if errOld == nil && errOwn == nil && own.LT(old) {
		return from, fmt.Errorf(
			"%s (%s) is older than %s (%s), the head of channel %s; say with --replaces what it follows", bundle, own,
			from.Replaces, old, to)
	}
	return from, nil
}

// versions are the versions of the bundles of a package.
func (d *directory) versions(pkg string) map[string]string {
	out := map[string]string{}
	c, err := load.Load(d.fs, load.Options{Lenient: true})
	if err != nil {
		return out
	}
	for _, p := range c.Packages {
		if p.Name == pkg {
			for _, b := range p.Bundles {
				out[b.Name] = b.Version
			}
		}
	}
	return out
}

// addEntry changes or makes the channel, looks whether the catalog is still as good as it was, and writes.
func (t *tool) addEntry(ctx context.Context, d *directory, pkg, channel string, e catalog.Entry) error {
	file, text, err := d.with(pkg, channel, e)
	if err != nil {
		return err
	}
	c, err := load.Load(overlay{d.fs, file, text}, load.Options{Stop: ctx.Done()})
	if err != nil {
		return err
	}
	if err := t.reportFindings(newErrors(d.findings, c.Findings)); err != nil {
		return &ExitError{exitFindings, fmt.Errorf("nothing was written: %w with this entry", err)}
	}
	path := filepath.Join(d.path, filepath.FromSlash(file))
	if err := writeFile(path, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
		return err
	}
	t.printNote("%s: %s is in channel %s of package %s%s", path, e.Name, channel, pkg, follows(e))
	return nil
}

func follows(e catalog.Entry) string {
	out := ""
	if e.Replaces != "" {
		out += ", replaces " + e.Replaces
	}
	if len(e.Skips) > 0 {
		out += ", skips " + strings.Join(e.Skips, ", ")
	}
	if e.SkipRange != "" {
		out += ", takes over from " + e.SkipRange
	}
	return out
}

// with returns the file that changes and its new text.
func (d *directory) with(pkg, channel string, e catalog.Entry) (file string, text []byte, err error) {
	for _, doc := range d.channels(pkg) {
		if doc.Name != channel {
			continue
		}
		for _, have := range channelOf(doc).Entries {
			if have.Name == e.Name {
				return "", nil, fmt.Errorf("%s is in channel %s already", e.Name, channel)
			}
		}
		if text, err = fs.ReadFile(d.fs, doc.File); err == nil {
			text, err = edit.AddEntry(text, doc, e)
		}
		return doc.File, text, err
	}
	home := slices.IndexFunc(d.docs, func(doc load.Document) bool {
		return doc.Schema == catalog.SchemaPackage && doc.Package == pkg
	})
	if home < 0 {
		return "", nil, fmt.Errorf("the directory has no olm.package of %s; make one with chandler catalog init", pkg)
	}
	b, err := fbc.NewBlob(map[string]any{
		"schema": catalog.SchemaChannel, "package": pkg, "name": channel,
		"entries": []catalog.Entry{e},
	})
	if err != nil {
		return "", nil, err
	}
	file = d.docs[home].File
	if text, err = fs.ReadFile(d.fs, file); err == nil {
		text, err = edit.Append(text, b)
	}
	return file, text, err
}

// newErrors are the errors that were not there before. Lines move, so they do not count.
func newErrors(before, after catalog.Findings) catalog.Findings {
	var out catalog.Findings
	for _, f := range onlyErrors(after) {
		if !slices.ContainsFunc(before, func(b catalog.Finding) bool {
			return b.Rule == f.Rule && b.File == f.File && b.Package == f.Package && b.Message == f.Message
		}) {
			out = append(out, f)
		}
	}
	return out
}
