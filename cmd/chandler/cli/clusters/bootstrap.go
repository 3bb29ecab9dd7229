package clusters

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/services/installer/clusteraccess"
	"github.com/chandler-fleet/chandler/services/installer/executor/access"
)

const bootstrapHelp = `With --bootstrap the kubeconfig is used on this machine only, as kubectl would: it may run the login program of a
cloud, and is not sent to Chandler. By it the cluster gets an account for Chandler (namespace chandler-system, service
account chandler-hub, with its rights and an admission policy that keeps it from others), and a token of it that ends
after --lifetime, or sooner where the cluster says so. Chandler asks for the next token at half of that time. Whoever
runs this must be an administrator of the cluster.`

// source is where the kubeconfig of a cluster comes from.
type source struct {
	path      string
	bootstrap bool
	context   string
	lifetime  time.Duration
}

func (s *source) flags(c *cobra.Command) {
	c.Flags().StringVar(&s.path, "kubeconfig", "", "kubeconfig with token or certificates inside, - for standard input; "+
		"with --bootstrap any kubeconfig, by default that of kubectl")
	c.Flags().BoolVar(&s.bootstrap, "bootstrap", false,
		"make an account for Chandler in the cluster, and register a token of it")
	c.Flags().StringVar(&s.context, "context", "", "with --bootstrap: context of the kubeconfig; default: the current one")
	c.Flags().DurationVar(&s.lifetime, "lifetime", clusteraccess.DefaultLife,
		"with --bootstrap: how long a token is to live; at least 10m")
}

// none refuses a kubeconfig.
func (s *source) none() error {
	if s.path != "" || s.bootstrap || s.context != "" {
		return command.Usagef("--agent is for clusters without a kubeconfig: leave out --kubeconfig, --bootstrap and --context")
	}
	return nil
}

// kubeconfig is what Chandler is given.
func (s *source) kubeconfig(ctx context.Context, a *command.Env) (string, error) {
	if !s.bootstrap {
		if s.context != "" {
			return "", command.Usagef("--context is for --bootstrap: without it the kubeconfig is registered as it is")
		}
		return readKubeconfig(a, s.path)
	}
	if s.lifetime < clusteraccess.MinLife {
		return "", command.Usagef("--lifetime %s: no API server gives a token for less than %s", s.lifetime,
			clusteraccess.MinLife)
	}
	person := access.Person{Path: s.path, Context: s.context}
	if s.path == "-" {
		raw, err := readKubeconfig(a, s.path)
		if err != nil {
			return "", err
		}
		person = access.Person{Raw: []byte(raw), Context: s.context}
	}
	config, err := person.Config()
	if err != nil {
		return "", command.Refused(err)
	}
	raw, token, err := access.Bootstrap(ctx, config, s.lifetime)
	if err != nil {
		return "", fmt.Errorf("bootstrap of the cluster: %w", err)
	}
	if _, err := fmt.Fprintf(a.Err, "the token ends at %s, and is followed by another one before\n",
		token.Expires.Format(time.RFC3339)); err != nil {
		return "", err
	}
	return string(raw), nil
}
