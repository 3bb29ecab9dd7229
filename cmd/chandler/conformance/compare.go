package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/author"
	"github.com/chandler-fleet/chandler/services/resolver/conformance"
)

func compareCommand(env Env) *cobra.Command {
	var asJSON, list bool
	c := &cobra.Command{
		Use:   "conformance DIR",
		Short: "Compare resolutions of cases with what OLM Classic did",
		Long: `Resolves every case below a directory and compares what comes with what OLM Classic did, which the case says.
A case counts as

  equal      the same plan, or the same error told as well
  one of     another one of the plans that OLM was seen to make of it
  meant      differs on purpose, for one of the reasons of docs/conformance.md, and is right by itself
  different  anything else

The exit status is 0 where nothing is different, 1 where something is, and 2 where a case cannot be read.`,
		Example: "  chandler conformance ./conformance\n  chandler conformance ./conformance/real --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := FindCases(args[0])
			if err != nil {
				return err
			}
			if list {
				return writeList(env.Out, args[0], files)
			}
			all := Compare(args[0], files)
			if err := writeComparison(env.Out, all, asJSON); err != nil {
				return err
			}
			return status(all)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write the verdict on each case as JSON")
	c.Flags().BoolVar(&list, "list", false, "say what the cases are about, and resolve none")
	return c
}

// Compared is a case and the verdict on it.
type Compared struct {
	File  string `json:"file"`
	Set   string `json:"set"` // the directory of the file, as seen from the one that was named
	Topic string `json:"topic,omitempty"`
	Name  string `json:"name,omitempty"`
	conformance.Judgement

	Error string `json:"error,omitempty"` // why there is no verdict
}

// Compare judges cases, as many at a time as there are processors. The answers are in the order of the files.
func Compare(dir string, files []string) []Compared {
	out := make([]Compared, len(files))
	reader := NewReader()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(files)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(files); i = int(next.Add(1)) - 1 {
				out[i] = compare(reader, dir, files[i])
			}
		})
	}
	wg.Wait()
	return out
}

func compare(reader *Reader, dir, file string) Compared {
	out := Compared{File: file, Set: setOf(dir, file)}
	c, err := ReadCase(file)
	if err == nil && c.Expect == nil {
		err = fmt.Errorf("%s: expect: it is missing; chandler resolve takes a case without", file)
	}
	if err != nil {
		out.Error = err.Error()
		return out
	}
	out.Topic, out.Name = c.Topic, c.Name
	run, err := conformance.Resolve(c, reader.Load(filepath.Dir(file)))
	if err != nil {
		out.Error = fmt.Sprintf("%s: %v", file, err)
		return out
	}
	out.Judgement = conformance.Judge(run)
	return out
}

// setOf is the directory of a file as seen from dir, or the last name of dir where it stands right there.
func setOf(dir, file string) string {
	if rel, err := filepath.Rel(dir, filepath.Dir(file)); err == nil && rel != "." && !strings.HasPrefix(rel, "..") {
		return filepath.ToSlash(rel)
	}
	if abs, err := filepath.Abs(filepath.Dir(file)); err == nil {
		return filepath.Base(abs)
	}
	return filepath.Base(filepath.Dir(file))
}

// status is the error that the command ends with.
func status(all []Compared) error {
	var unread, wrong int
	for _, c := range all {
		switch {
		case c.Error != "":
			unread++
		case c.Verdict == conformance.Different:
			wrong++
		}
	}
	switch {
	case unread > 0:
		return fmt.Errorf("%s cannot be resolved as %s", count(unread, "case"),
			map[bool]string{true: "it stands", false: "they stand"}[unread == 1])
	case wrong > 0:
		return &author.ExitError{Code: author.ExitDiffers}
	}
	return nil
}

// writeList says what cases are about.
func writeList(w io.Writer, dir string, files []string) error {
	set := ""
	for _, file := range files {
		c, err := ReadCase(file)
		if err != nil {
			return err
		}
		if s := setOf(dir, file); s != set {
			set = s
			fmt.Fprintf(w, "%s:\n", clean(set))
		}
		wrapped(w, "  ", "      ", filepath.Base(file)+": "+c.Description)
	}
	return nil
}

// comparison is the result for programs.
type comparison struct {
	Cases     int                           `json:"cases"`
	Equal     int                           `json:"equal"`
	OneOf     int                           `json:"alternative"`
	Meant     map[conformance.Reason]int    `json:"meant"`
	Different int                           `json:"different"`
	Unread    int                           `json:"unread"`
	Reasons   map[conformance.Reason]string `json:"reasons"`
	Verdicts  []Compared                    `json:"verdicts"`
}

func newComparison(all []Compared) comparison {
	c := comparison{
		Cases: len(all), Meant: map[conformance.Reason]int{}, Reasons: map[conformance.Reason]string{},
		Verdicts: all,
	}
	for _, one := range all {
		switch {
		case one.Error != "":
			c.Unread++
		case one.Verdict == conformance.Equal:
			c.Equal++
		case one.Verdict == conformance.OneOf:
			c.OneOf++
		case one.Verdict == conformance.Meant:
			c.Meant[one.Reason]++
			c.Reasons[one.Reason] = one.Reason.Text()
		default:
			c.Different++
		}
	}
	return c
}

func writeComparison(w io.Writer, all []Compared, asJSON bool) error {
	c := newComparison(all)
	if !asJSON {
		return c.print(w)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(c)
}
