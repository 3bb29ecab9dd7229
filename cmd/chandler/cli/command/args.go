package command

import (
	"github.com/spf13/cobra"
)

// Scope is where names of a command line are looked for.
type Scope struct {
	Cluster   string
	Namespace string
}

// First is the first argument, "" where there is none.
func First(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// Unlimited is no bound of arguments.
const Unlimited = -1

// RequireArgs wants one argument and at most so many, and shows the line of usage otherwise.
func RequireArgs(most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return Usagef("missing argument; usage: %s", c.UseLine())
		case most != Unlimited && len(args) > most:
			return Usagef("unexpected argument %q; usage: %s", args[most], c.UseLine())
		}
		return nil
	}
}

// Flags registers --cluster and --namespace.
func (s *Scope) Flags(c *cobra.Command) {
	c.Flags().StringVar(&s.Cluster, "cluster", "", "name of the cluster")
	c.Flags().StringVarP(&s.Namespace, "namespace", "n", "", "namespace")
}
