package author

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
)

// table is a result for people, whose rows are also values for programs.
type table struct {
	columns []string
	rows    [][]any
	values  []any
}

func (t *table) add(value any, cells ...any) {
	t.values = append(t.values, value)
	t.rows = append(t.rows, cells)
}

// none stands for an empty cell.
const none = "<none>"

func or(s string) string { return cmp.Or(s, none) }

func yes(b bool) string {
	if b {
		return "yes"
	}
	return none
}

// listing is a command that loads a catalog and shows what is in each of its packages.
func (t *tool) listing(use, short, example string, columns []string, row func(*table, catalog.Package)) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use: use + " REF [PACKAGE...]", Short: short, Long: short + ".\n\n" + references, Example: example,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := oneOf("output", format, "table", formatJSON, formatYAML); err != nil {
				return err
			}
			return t.sources.with(c.Context(), args[0], func(r *tree) error {
				cat, err := t.sources.load(c.Context(), r, load.Options{Lenient: true})
				if err != nil {
					return err
				}
				rows := table{columns: columns, values: []any{}}
				for _, p := range cat.Packages {
					if len(args) == 1 || slices.Contains(args[1:], p.Name) {
						row(&rows, p)
					}
				}
				if err := t.print(rows, format); err != nil {
					return err
				}
				return t.reportFindings(onlyErrors(cat.Findings))
			})
		},
	}
	c.Flags().StringVarP(&format, "output", "o", "table", "table, json or yaml")
	t.sources.sourceFlags(c)
	return c
}

func onlyErrors(in catalog.Findings) catalog.Findings {
	var out catalog.Findings
	for _, f := range in {
		if f.Severity == catalog.SeverityError {
			out = append(out, f)
		}
	}
	return out
}

func (t *tool) print(rows table, format string) error {
	if format != "table" {
		return writeValue(t.Out, format, map[string]any{"items": rows.values})
	}
	out := &metav1.Table{}
	for _, c := range rows.columns {
		out.ColumnDefinitions = append(out.ColumnDefinitions, metav1.TableColumnDefinition{Name: c, Type: "string"})
	}
	for _, r := range rows.rows {
		shown := make([]any, len(r))
		for i, c := range r {
			shown[i] = plain.Cell(fmt.Sprint(c))
		}
		out.Rows = append(out.Rows, metav1.TableRow{Cells: shown})
	}
	return printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(out, t.Out)
}

func (t *tool) listPackagesCommand() *cobra.Command {
	type value struct {
		Name           string `json:"name"`
		DefaultChannel string `json:"defaultChannel"`
		Head           string `json:"head,omitempty"`
		Channels       int    `json:"channels"`
		Bundles        int    `json:"bundles"`
		Deprecated     bool   `json:"deprecated,omitempty"`
	}
	return t.listing("packages", "Show the packages of a catalog at hand", "  chandler catalog list packages ./catalog",
		[]string{"Name", "Default Channel", "Head", "Channels", "Bundles", "Deprecated"},
		func(rows *table, p catalog.Package) {
			v := value{
				p.Name, p.DefaultChannel, "", len(p.Channels), len(p.Bundles),
				deprecated(p, catalog.SchemaPackage, ""),
			}
			if c, ok := p.Channel(p.DefaultChannel); ok {
				v.Head = strings.Join(catalog.Heads(c), ",")
			}
			rows.add(v, v.Name, v.DefaultChannel, or(v.Head), v.Channels, v.Bundles, yes(v.Deprecated))
		})
}

func (t *tool) listChannelsCommand() *cobra.Command {
	type value struct {
		Package    string `json:"package"`
		Name       string `json:"name"`
		Head       string `json:"head,omitempty"`
		Entries    int    `json:"entries"`
		Default    bool   `json:"default,omitempty"`
		Deprecated bool   `json:"deprecated,omitempty"`
	}
	return t.listing("channels", "Show the channels of a catalog at hand, with their heads",
		"  chandler catalog list channels ./catalog tidegauge",
		[]string{"Package", "Channel", "Head", "Entries", "Default", "Deprecated"},
		func(rows *table, p catalog.Package) {
			for _, c := range p.Channels {
				v := value{
					p.Name, c.Name, strings.Join(catalog.Heads(c), ","), len(c.Entries),
					c.Name == p.DefaultChannel, deprecated(p, catalog.SchemaChannel, c.Name),
				}
				rows.add(v, v.Package, v.Name, or(v.Head), v.Entries, yes(v.Default), yes(v.Deprecated))
			}
		})
}

func (t *tool) listBundlesCommand() *cobra.Command {
	type value struct {
		Package    string `json:"package"`
		Channel    string `json:"channel"`
		Name       string `json:"name"`
		Version    string `json:"version"`
		Replaces   string `json:"replaces,omitempty"`
		Skips      int    `json:"skips,omitempty"`
		SkipRange  string `json:"skipRange,omitempty"`
		Image      string `json:"image,omitempty"`
		Deprecated bool   `json:"deprecated,omitempty"`
	}
	return t.listing("bundles", "Show the bundles of a catalog at hand, channel by channel from the head",
		"  chandler catalog list bundles ./catalog tidegauge",
		[]string{"Package", "Channel", "Bundle", "Version", "Replaces", "Skips", "Skip Range", "Image"},
		func(rows *table, p catalog.Package) {
			for _, c := range p.Channels {
				for _, e := range fromHead(c) {
					b, _ := p.Bundle(e.Name)
					v := value{
						p.Name, c.Name, e.Name, b.Version, e.Replaces, len(e.Skips), e.SkipRange, b.Image,
						deprecated(p, catalog.SchemaBundle, e.Name),
					}
					rows.add(v, v.Package, v.Channel, v.Name, v.Version, or(v.Replaces), v.Skips, or(v.SkipRange),
						or(v.Image))
				}
			}
		})
}

// fromHead orders entries as updates lead to them, those that are skipped last.
func fromHead(c catalog.Channel) []catalog.Entry {
	g, err := catalog.NewGraph(c)
	if err != nil {
		return c.Entries
	}
	out := g.Ordered()
	listed := map[string]bool{}
	for _, e := range out {
		listed[e.Name] = true
	}
	for _, e := range c.Entries {
		if !listed[e.Name] {
			out = append(out, e)
		}
	}
	return out
}

func deprecated(p catalog.Package, schema, name string) bool {
	return slices.ContainsFunc(p.Deprecations, func(d catalog.Deprecation) bool {
		return d.Schema == schema &&
			d.Name == name
	})
}
