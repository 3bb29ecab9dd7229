package command

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Scope is where names of a command line are looked for: what flags say.
type Scope struct {
	Cluster   string
	Namespace string
}

// InContext completes a scope by the environment and the current context.
func (a *Env) InContext(s Scope) (Scope, error) {
	of, err := a.Settings()
	if err != nil {
		return s, err
	}
	return Scope{Cluster: cmp.Or(s.Cluster, of.Cluster), Namespace: cmp.Or(s.Namespace, of.Namespace)}, nil
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

// Changes reads KEY=VALUE and KEY- of labels, annotations or taints, as kubectl label does. Errors name one of them.
func Changes(one string, changes []string) (map[string]*string, error) {
	if len(changes) == 0 {
		return nil, nil //nolint:nilnil // nothing is to change
	}
	out := map[string]*string{}
	for _, c := range changes {
		key, value, sets := strings.Cut(c, "=")
		if !sets {
			var ends bool
			if key, ends = strings.CutSuffix(c, "-"); !ends {
				return nil, Usagef("%q: want KEY=VALUE, or KEY- to remove the %s", c, one)
			}
		}
		if _, twice := out[key]; twice || key == "" {
			return nil, Usagef("%q: want each %s once, as KEY=VALUE or KEY-", c, one)
		}
		if out[key] = nil; sets {
			out[key] = &value
		}
	}
	return out, nil
}

// CheckOverwrite refuses changes of labels or taints that have another value.
func CheckOverwrite(have map[string]string, changes map[string]*string) error {
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		before, has := have[key]
		if value := changes[key]; has && value != nil && before != *value {
			return Refusedf("%s has the value %s already: use --overwrite to change it", key, cmp.Or(before, `""`))
		}
	}
	return nil
}

// ListedBy is the annotation of a group of commands that names the command which lists what they are about.
const ListedBy = "listed-by"
