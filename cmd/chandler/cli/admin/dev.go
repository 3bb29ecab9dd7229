// Package admin holds the commands that run and maintain an installation: chandler dev, keys, migrate, bus, token,
// effects and log.
package admin

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/dev"
	"github.com/chandler-fleet/chandler/cmd/chandler/keys"
	"github.com/chandler-fleet/chandler/libs/service"
)

// VersionCommand is chandler version.
func VersionCommand(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this program", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.Say("chandler %s", service.Version()) },
	}
}

// DevCommand is chandler dev.
func DevCommand(a *command.Env) *cobra.Command {
	o := dev.Options{Version: service.Version()}
	c := &cobra.Command{
		Use:   "dev",
		Short: "Run all of Chandler in this process, with its own Postgres and NATS",
		Long: `Runs the four services in one process with an embedded NATS and a private Postgres, until Ctrl-C.
Its data stays in the state folder and is used again at the next start; with --state "" it is deleted at the end.`,
		Example: `  chandler dev
  chandler dev --state '' --listen 127.0.0.1:0`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("state") {
				o.State = a.DefaultState()
			}
			o.Log, o.Ready = a.Err, func(r dev.Running) error { return devReady(a, r) }
			return dev.Run(cmd.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.State, "state", "", "folder for data (default ~/.local/state/chandler)")
	f.StringVar(&o.Listen, "listen", "127.0.0.1:8080", "address of the API; port 0 takes a free one")
	f.StringVar(&o.LogLevel, "log-level", "warn", "debug, info, warn or error")
	f.DurationVar(&o.Drain, "drain", 10*time.Second, "how long an ordered stop may take")
	return c
}

// devReady tells a person what to do next.
func devReady(a *command.Env, r dev.Running) error {
	return errors.Join(
		a.Say("Chandler runs at %s (API document: %s/api/v1/openapi.yaml). In another terminal:", r.URL, r.URL),
		a.Say(""),
		a.Say("  export CHANDLER_URL=%s CHANDLER_TOKEN=%s", r.URL, r.Token),
		a.Say("  chandler cluster add east-1 --kubeconfig FILE"),
		a.Say("  chandler catalog add examples --directory PATH"),
		a.Say(""),
		a.Say("Ctrl-C stops it."),
	)
}

// KeysCommand is chandler keys.
func KeysCommand(a *command.Env) *cobra.Command {
	var secret string
	c := &cobra.Command{
		Use:   "keys",
		Short: "Create the secrets of a new installation",
		Long: `Writes new secrets: the administrator's token, the key pairs that encrypt kubeconfigs and credentials of catalogs,
the key that signs grants, the key of hooks, the passwords of the database, and the keys of the users of NATS.
They are written as an environment file, which docker compose reads as .env, or with --secret as a Kubernetes Secret
for the chart.

The chart's Secret needs one more key, CHANDLER_ADMIN_DATABASE_URL: the database of the migration.`,
		Example: `  chandler keys > .env
  chandler keys --secret chandler | kubectl apply -f -`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return makeKeys(a, secret) },
	}
	c.Flags().StringVar(&secret, "secret", "", "write a Kubernetes Secret of this name")
	c.AddCommand(append(rotation(a), natsCommand(a), agentCommand(a))...)
	return c
}

func makeKeys(a *command.Env, secret string) error {
	k, err := keys.Make()
	if err != nil {
		return err
	}
	if wrong := validation.IsDNS1123Subdomain(secret); secret != "" && len(wrong) > 0 {
		return command.Usagef("--secret %q is not a valid name of a Secret: %s", secret, wrong[0])
	}
	if secret == "" {
		for _, v := range k.Variables() {
			if err := a.Say("%s=%s", v.Name, v.Value); err != nil {
				return err
			}
		}
		return nil
	}
	s := corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, StringData: map[string]string{}}
	s.Name = secret
	for _, v := range k.Variables() {
		s.StringData[v.Name] = v.Value
	}
	raw, err := yaml.Marshal(s)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(a.Out, string(raw))
	return err
}
