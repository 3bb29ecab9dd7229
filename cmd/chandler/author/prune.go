package author

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/author/prune"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/fbc"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
)

// selections reads the values of --keep and --package.
func selections(texts []string) ([]prune.Selection, error) {
	out := make([]prune.Selection, 0, len(texts))
	for _, s := range texts {
		one, err := prune.Parse(s)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// selection returns whether a bundle is selected; no texts select all.
func selection(c *load.Catalog, texts []string) (func(pkg, bundle string) bool, error) {
	chosen, err := selections(texts)
	if err != nil {
		return nil, err
	}
	return prune.Chosen(c.Packages, chosen)
}

func (t *tool) pruneCommand() *cobra.Command {
	var format, to string
	var keep []string
	var strict bool
	c := &cobra.Command{
		Use:   "prune REF --keep PACKAGE[:CHANNEL][@RANGE]...",
		Short: "Keep some packages, channels or versions, and what they depend on",
		Long: `Writes the part of a catalog that is kept, and the packages of the same catalog that it depends on. What is
wanted is PACKAGE, PACKAGE:CHANNEL, PACKAGE@RANGE or PACKAGE:CHANNEL@RANGE, as often as needed.

Where versions in the middle of a channel go, the next one that stays replaces the one before the gap and
skips those in it, so that every cluster still has a way on. The result is valid, or nothing is written.
What could not be satisfied is told on standard error; with --strict the status is then 1.

` + references,
		Example: "  chandler catalog prune registry.test/ops/catalog:v1 --keep tidegauge:steady@'>=1.1.0' --keep " +
			"buoy --to ./mine",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f, err := fbc.ParseFormat(format)
			if err != nil {
				return err
			}
			chosen, err := selections(keep)
			if err != nil {
				return err
			}
			if len(chosen) == 0 {
				return errors.New("say with --keep what to keep")
			}
			return t.sources.with(c.Context(), args[0], func(r *tree) error {
				plan, err := t.plan(c.Context(), r, chosen)
				if err != nil {
					return err
				}
				if err := t.prune(c.Context(), r, plan, f, to); err != nil {
					return err
				}
				if strict && len(plan.Unmet) > 0 {
					return &ExitError{exitFindings, fmt.Errorf("%s not satisfied", count(len(plan.Unmet), "need"))}
				}
				return nil
			})
		},
	}
	formatFlag(c, &format, fbc.YAML)
	c.Flags().StringArrayVar(&keep, "keep", nil, "what to keep; may be given several times")
	c.Flags().StringVar(&to, "to", "", "write a new directory, one file for each package, and not to standard output")
	c.Flags().BoolVar(&strict, "strict", false, "end with status 1 where a dependency is not satisfied")
	t.sources.sourceFlags(c)
	return c
}

func (t *tool) plan(ctx context.Context, r *tree, chosen []prune.Selection) (*prune.Plan, error) {
	c, err := t.valid(ctx, r)
	if err != nil {
		return nil, err
	}
	plan, err := prune.Make(c.Packages, chosen)
	if err != nil {
		return nil, err
	}
	for _, n := range plan.Notes {
		t.printNote("%s", n)
	}
	for _, n := range plan.Unmet {
		t.printNote("not satisfied: %s", n)
	}
	return plan, nil
}

// prune writes what the plan leaves, once it is known to be valid.
func (t *tool) prune(ctx context.Context, r *tree, plan *prune.Plan, f fbc.Format, to string) error {
	fill := func(dir string) error {
		err := t.fill(ctx, r, dir, f, func(b fbc.Blob) (fbc.Blob, error) {
			b, stays, err := plan.Apply(b)
			if !stays {
				b = fbc.Blob{}
			}
			return b, err
		})
		if err != nil {
			return err
		}
		return t.check(ctx, dir)
	}
	if to != "" {
		if err := writeDir(to, false, fill); err != nil {
			return err
		}
		t.printNote("%s: %s", to, count(len(plan.Packages()), "package"))
		return nil
	}
	return spooled(fill, t.Out)
}

// fill writes the documents of a tree into a directory, changed by do. A document without schema is left out.
func (t *tool) fill(ctx context.Context, r *tree, dir string, f fbc.Format, do change) error {
	out := &byPackage{dir: dir, format: f}
	findings, err := t.sources.documents(ctx, r, func(b fbc.Blob) error {
		b, err := do(b)
		if err != nil || b.Schema == "" {
			return err
		}
		return out.Write(b)
	})
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	return t.reportFindings(onlyErrors(findings))
}

// check loads what was written; its errors are told.
func (t *tool) check(ctx context.Context, dir string) error {
	found, err := errorsIn(ctx, dir)
	if err != nil {
		return err
	}
	if err := t.reportFindings(found); err != nil {
		return &ExitError{exitFindings, fmt.Errorf("nothing was written: the result would not be valid: %w", err)}
	}
	return nil
}

// errorsIn are the errors of a catalog directory.
func errorsIn(ctx context.Context, dir string) (catalog.Findings, error) {
	c, err := load.Load(os.DirFS(dir), load.Options{Stop: ctx.Done()})
	if err != nil {
		return nil, err
	}
	return onlyErrors(c.Findings), nil
}

// spooled fills a directory, and writes all its files to w once it is complete.
func spooled(fill func(dir string) error, w io.Writer) (err error) {
	dir, remove, err := temporary()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if err := fill(dir); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		_, err = io.Copy(w, f)
		return errors.Join(err, f.Close())
	})
}
