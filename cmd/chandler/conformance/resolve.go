package conformance

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/author"
	"github.com/chandler-fleet/chandler/services/resolver/conformance"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

func resolveCommand(env Env) *cobra.Command {
	var file string
	var asJSON bool
	c := &cobra.Command{
		Use:   "resolve --case FILE",
		Short: "Resolve a namespace that is described in a file",
		Long: `Resolves one namespace that is described as a case: its subscriptions, what is installed there, and the catalogs
that it sees. Shows what would be installed and upgraded and why, and explains what cannot be resolved. Nothing is
changed, and no server is needed. docs/conformance.md describes the format of a case.

The exit status is 0 if everything can be resolved, 1 if something cannot, and 2 if the case cannot be read. If the
case holds what OLM Classic did with it, the last lines compare.`,
		Example: "  chandler resolve --case upgrade.json\n  chandler resolve --case upgrade.json --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if file == "" {
				return errors.New("missing --case: the file with the case")
			}
			run, err := resolveFile(env, file)
			if err != nil {
				return err
			}
			if err := writeRun(env.Out, run, asJSON); err != nil {
				return err
			}
			if len(run.Failures()) > 0 {
				return &author.ExitError{Code: exitNot}
			}
			return nil
		},
	}
	c.Flags().StringVar(&file, "case", "", "file with the case, - for standard input")
	c.Flags().BoolVar(&asJSON, "json", false, "write the whole result as JSON")
	return c
}

func resolveFile(env Env, file string) (conformance.Run, error) {
	c, err := readOne(env, file)
	if err != nil {
		return conformance.Run{}, err
	}
	run, err := conformance.Resolve(c, NewReader().Load(filepath.Dir(file)))
	if err != nil {
		return run, fmt.Errorf("%s: %w", file, err)
	}
	return run, nil
}

func readOne(env Env, file string) (conformance.Case, error) {
	if file != "-" {
		return ReadCase(file)
	}
	raw, err := io.ReadAll(env.In)
	if err != nil {
		return conformance.Case{}, fmt.Errorf("standard input: %w", err)
	}
	c, err := conformance.Decode(raw)
	if err != nil {
		return c, fmt.Errorf("standard input: %w", err)
	}
	return c, nil
}

// answer is the result for programs: in the words of a case's expectation, and the whole resolution.
type answer struct {
	Name                 string                   `json:"name,omitempty"`
	Result               string                   `json:"result"`
	Install              []conformance.Install    `json:"install"`
	UpdatedSubscriptions []conformance.Updated    `json:"updatedSubscriptions"`
	Errors               []resolution.Explanation `json:"errors,omitempty"`
	Judgement            *conformance.Judgement   `json:"judgement,omitempty"` // where the case says what OLM did
	Resolution           resolution.Result        `json:"resolution"`
}

func writeRun(w io.Writer, run conformance.Run, asJSON bool) error {
	var judged *conformance.Judgement
	if run.Case.Expect != nil {
		j := conformance.Judge(run)
		judged = &j
	}
	if !asJSON {
		printRun(w, run, judged)
		return nil
	}
	a := answer{
		Name: run.Case.Name, Result: conformance.ResultResolved, Install: run.Plan(),
		UpdatedSubscriptions: run.Updated(), Errors: run.Failures(), Judgement: judged, Resolution: run.Result,
	}
	if len(a.Errors) > 0 {
		a.Result = conformance.ResultError
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(a)
}

// printRun says in words what comes of a case, component by component.
func printRun(w io.Writer, run conformance.Run, judged *conformance.Judgement) {
	c := run.Case
	wrapped(w, "", "", fmt.Sprintf("namespace %s: %s, %s installed, %s", c.Namespace,
		count(len(c.Subscriptions), "subscription"),
		count(len(run.Input.Installed), "operator"), count(len(run.Input.View.Catalogs()), "visible catalog")))
	for _, part := range run.Result.Components {
		fmt.Fprintln(w)
		switch {
		case part.Failure != nil:
			printFailure(w, part)
		case len(part.Bundles) > 0:
			printPlan(w, part)
		default:
			printUnchanged(w, part)
		}
	}
	if judged != nil {
		fmt.Fprintln(w)
		printJudgement(w, *judged)
	}
}

func printPlan(w io.Writer, part resolution.Component) {
	wrapped(w, "", "  ", "plan for "+part.Name+":")
	for _, b := range part.Bundles {
		verb := "install " + b.CSV
		if b.Replaces != "" {
			verb = "upgrade " + b.Replaces + " to " + b.CSV
		}
		wrapped(w, "  ", "    ", fmt.Sprintf("%s, from channel %s of package %s in catalog %s", verb, b.Channel,
			b.Package, b.Catalog))
		wrapped(w, "    ", "    ", why(b))
	}
	for _, o := range part.Outcomes {
		if !o.Planned {
			wrapped(w, "  ", "    ", fmt.Sprintf("subscription %s stays at %s", o.Subscription,
				cmp.Or(o.CSV, "nothing")))
		}
	}
}

// why says in words what brought a bundle into a plan.
func why(b resolution.Planned) string {
	text := map[string]string{
		resolution.ReasonChannelHead: "because it is the head of its channel",
		resolution.ReasonStartingCSV: "because the subscription begins with it",
		resolution.ReasonSubscribed:  "because what is nearer to the head cannot be had with the rest",
		resolution.ReasonNextStep:    "because it follows what is installed",
		resolution.ReasonSkipRange:   "because its skipRange holds the version that is installed",
	}[b.Reason]
	if b.RequiredBy != "" {
		text = "because " + b.RequiredBy + " requires it"
	}
	if len(b.Subscriptions) > 0 {
		text += " (subscription " + strings.Join(b.Subscriptions, ", ") + ")"
	}
	return text
}

func printUnchanged(w io.Writer, part resolution.Component) {
	for _, o := range part.Outcomes {
		wrapped(w, "", "  ", fmt.Sprintf("nothing to do for %s: subscription %s stays at %s", part.Name, o.Subscription,
			cmp.Or(o.CSV, "nothing")))
	}
}

func printFailure(w io.Writer, part resolution.Component) {
	blamed := append(slices.Clone(part.Failure.Subscriptions), part.Failure.CSVs...)
	wrapped(w, "", "  ", fmt.Sprintf("cannot be resolved (%s): %s", part.Failure.Class, strings.Join(blamed, ", ")))
	for _, s := range part.Failure.Statements {
		wrapped(w, "  - ", "    ", s.Text)
	}
	if part.Failure.More > 0 {
		wrapped(w, "  - ", "    ", fmt.Sprintf("and %d more", part.Failure.More))
	}
}

func printJudgement(w io.Writer, j conformance.Judgement) {
	switch j.Verdict {
	case conformance.Equal:
		wrapped(w, "", "  ", "OLM does the same.")
	case conformance.OneOf:
		wrapped(w, "", "  ", "OLM does one of several things, of which this is one.")
	case conformance.Meant:
		wrapped(w, "", "  ", "OLM does something else, on purpose: "+j.Reason.Text()+".")
	case conformance.Different:
		wrapped(w, "", "  ", "OLM does something else:")
		for _, d := range j.Differences {
			wrapped(w, "  - ", "    ", d)
		}
	}
}
