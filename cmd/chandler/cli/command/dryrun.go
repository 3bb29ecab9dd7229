package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// DryRun is the value of --dry-run, with kubectl's words.
type DryRun string

// The ways of a dry run.
const (
	DryRunNone   DryRun = "none"   // what is asked for is done
	DryRunClient DryRun = "client" // files are read and checked; nobody is asked
	DryRunServer DryRun = "server" // the server makes all checks, and writes nothing
)

// dryRunFlag is --dry-run of a command that knows some of the ways.
type dryRunFlag struct {
	value *DryRun
	ways  []string
}

// DryRunFlag registers --dry-run with the ways that the command knows beside none. Without a value it is server.
func DryRunFlag(c *cobra.Command, d *DryRun, usage string, ways ...DryRun) {
	*d = DryRunNone
	f := &dryRunFlag{value: d, ways: []string{string(DryRunNone)}}
	for _, w := range ways {
		f.ways = append(f.ways, string(w))
	}
	c.Flags().Var(f, "dry-run", usage)
	c.Flags().Lookup("dry-run").NoOptDefVal = string(DryRunServer)
}

// Set implements pflag.Value.
func (f *dryRunFlag) Set(s string) error {
	if !slices.Contains(f.ways, s) {
		return fmt.Errorf("want one of %s", strings.Join(f.ways, ", "))
	}
	*f.value = DryRun(s)
	return nil
}

// String implements pflag.Value.
func (f *dryRunFlag) String() string { return string(*f.value) }

// Type implements pflag.Value.
func (*dryRunFlag) Type() string { return "string" }

// Asked says whether nothing is to be done.
func (d DryRun) Asked() bool { return d == DryRunClient || d == DryRunServer }

// Note is what stands behind what would be done, as kubectl says it; "" where it is done.
func (d DryRun) Note() string {
	switch d {
	case DryRunClient:
		return " (dry run)"
	case DryRunServer:
		return " (server dry run)"
	default:
		return ""
	}
}
