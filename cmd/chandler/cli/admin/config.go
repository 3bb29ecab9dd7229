package admin

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	clientcmd "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/signin"
)

// ConfigCommand is chandler config: which Chandler commands talk to, and where they look for names.
func ConfigCommand(a *command.Env) *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "Choose among several Chandlers, and set the cluster and namespace of commands",
		Long: `A context is one Chandler: its address, how you are known there, and the cluster and the namespace in which commands
look for names when --cluster and -n are not given. Contexts stand in ~/.config/chandler/config.yaml, or in the file
that --config names. Flags go before environment variables (CHANDLER_CONTEXT, CHANDLER_URL, CHANDLER_TOKEN,
CHANDLER_CLUSTER, CHANDLER_NAMESPACE), and those before the context. A context that --context names goes before the
variables with all that it says.`,
	}
	c.AddCommand(getContexts(a), currentContext(a), useContext(a), setContext(a), deleteContext(a), viewContexts(a))
	return c
}

func getContexts(a *command.Env) *cobra.Command {
	var o printer.Output
	c := &cobra.Command{
		Use: "get-contexts", Short: "List the contexts", Args: cobra.NoArgs,
		Long:    "Lists the contexts; the current one is marked.",
		Example: "  chandler config get-contexts\n  chandler config get-contexts -o name",
		RunE: func(*cobra.Command, []string) error {
			f, err := a.Contexts()
			if err != nil {
				return err
			}
			s, err := a.Settings()
			if err != nil {
				return err
			}
			return printer.List(a, &o, printer.Table{Plural: "contexts", Columns: []printer.Column{
				{Name: "Current"},
				{Name: "Name"},
				{Name: "URL"},
				{Name: "Cluster", Cut: 1},
				{Name: "Namespace", Cut: 1},
			}}, f.Contexts, nil, func(of command.Context) printer.Item {
				mark := ""
				if of.Name == s.Context {
					mark = "*"
				}
				return printer.Item{Name: of.Name, Value: hidden(of), Cells: []any{
					mark, of.Name, printer.Or(of.URL, command.DefaultURL), printer.Or(of.Cluster, printer.None),
					printer.Or(of.Namespace, printer.None),
				}}
			})
		},
	}
	o.Flags(c)
	return c
}

// redacted stands where a token is kept and not shown, as with kubectl.
const redacted = "REDACTED"

func hidden(of command.Context) command.Context {
	if of.Token != "" {
		of.Token = redacted
	}
	if of.Exec != nil {
		program := *of.Exec
		program.Env = slices.Clone(program.Env)
		for i := range program.Env {
			program.Env[i].Value = redacted
		}
		of.Exec = &program
	}
	return of
}

func currentContext(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "current-context", Short: "Show the name of the current context", Args: cobra.NoArgs,
		Long:    "Shows the name of the context that commands use.",
		Example: "  chandler config current-context",
		RunE: func(*cobra.Command, []string) error {
			s, err := a.Settings()
			switch {
			case err != nil:
				return err
			case s.Context == "":
				return command.Refusedf("no context is current: chandler config use-context")
			}
			return a.Say("%s", s.Context)
		},
	}
}

func useContext(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "use-context NAME", Short: "Make a context the current one", Args: command.RequireArgs(1),
		Long:    "Makes a context the one that commands use from now on.",
		Example: "  chandler config use-context north",
		RunE: func(_ *cobra.Command, args []string) error {
			err := a.ChangeContexts(func(f *command.Contexts) error {
				_, err := f.Find(args[0])
				f.Current = args[0]
				return err
			})
			if err != nil {
				return err
			}
			return a.Say("Switched to context %q.", args[0])
		},
	}
}

// contextFlags are the parts of a context that set-context changes; --url and --token are the flags of all commands.
type contextFlags struct {
	command.Scope

	program string
	args    []string
	env     []string
	current bool

	authority, certificate, key string // files
}

func setContext(a *command.Env) *cobra.Command {
	var o contextFlags
	c := &cobra.Command{
		Use:   "set-context (NAME | --current)",
		Short: "Make a context, or change parts of one",
		Long: `Makes a context, or changes what is given of one: --url, --token, --cluster, -n, --exec-command. The first context
becomes the current one. An empty value removes a part.

With --client-certificate and --client-key, a machine is let in by its certificate; --certificate-authority is who
signed that of Chandler, where the system does not know. Files are kept by their paths.

With --exec-command, a program gives the token, as in a kubeconfig: it writes an ExecCredential of
client.authentication.k8s.io/v1, for instance from the keyring of the system. Without a program and a token,
chandler login signs you in.`,
		Example: `  chandler config set-context north --url https://chandler.example.com
  chandler config set-context --current --cluster east-1 -n ports
  chandler config set-context machine --client-certificate tls.crt --client-key tls.key
  chandler config set-context ci --url https://chandler.example.com --exec-command get-token --exec-arg chandler`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.current != (len(args) == 0) {
				return command.Usagef("give the name of a context, or --current")
			}
			return o.set(a, cmd, command.First(args))
		},
	}
	o.Flags(c)
	c.Flags().StringVar(&o.authority, "certificate-authority", "", "file with the authority of Chandler's certificate")
	c.Flags().StringVar(&o.certificate, "client-certificate", "", "file with the certificate of a machine, in the place of a token")
	c.Flags().StringVar(&o.key, "client-key", "", "file with its key")
	c.Flags().BoolVar(&o.current, "current", false, "change the current context")
	c.Flags().StringVar(&o.program, "exec-command", "", "program that gives the token")
	c.Flags().StringArrayVar(&o.args, "exec-arg", nil, "argument of the program; can be repeated")
	c.Flags().StringArrayVar(&o.env, "exec-env", nil, "variable of the program, as NAME=VALUE; can be repeated")
	return c
}

func (o *contextFlags) set(a *command.Env, cmd *cobra.Command, name string) error {
	if url := cmd.Flags().Lookup("url"); url.Changed && a.URL != "" {
		if _, err := client.New(a.URL, ""); err != nil {
			return command.Usagef("%w", err)
		}
	}
	did := "modified"
	err := a.ChangeContexts(func(f *command.Contexts) error {
		if o.current {
			if name = f.Current; name == "" {
				return command.Usagef("no context is current: give the name of one")
			}
		}
		i := slices.IndexFunc(f.Contexts, func(of command.Context) bool { return of.Name == name })
		if i < 0 {
			f.Contexts, i, did = append(f.Contexts, command.Context{Name: name}), len(f.Contexts), "created"
		}
		if f.Current == "" {
			f.Current = name
		}
		return o.change(a, cmd, &f.Contexts[i])
	})
	if err != nil {
		return err
	}
	return a.Say("Context %q %s.", name, did)
}

func (o *contextFlags) change(a *command.Env, cmd *cobra.Command, of *command.Context) error {
	if cmd.Flags().Changed("url") && of.URL != "" && a.URL != of.URL {
		// They were given for the address before.
		of.Token, of.Exec, of.ClientCertificate, of.ClientKey = "", nil, "", ""
	}
	for flag, part := range map[string]struct {
		value string
		into  *string
	}{
		"url": {a.URL, &of.URL}, "token": {a.Token, &of.Token},
		"cluster": {o.Cluster, &of.Cluster}, "namespace": {o.Namespace, &of.Namespace},
	} {
		if cmd.Flags().Changed(flag) {
			*part.into = part.value
		}
	}
	if err := o.changeFiles(cmd, of); err != nil {
		return err
	}
	switch program := cmd.Flags().Changed("exec-command"); {
	case !program && (o.args != nil || o.env != nil):
		return command.Usagef("--exec-arg and --exec-env go with --exec-command")
	case program && o.program == "":
		of.Exec = nil
	case program:
		of.Exec = &clientcmd.ExecConfig{APIVersion: signin.ExecVersion, Command: o.program, Args: o.args}
		for _, v := range o.env {
			name, value, found := strings.Cut(v, "=")
			if !found || name == "" {
				return command.Usagef("--exec-env %q: want NAME=VALUE", v)
			}
			of.Exec.Env = append(of.Exec.Env, clientcmd.ExecEnvVar{Name: name, Value: value})
		}
	}
	return of.CheckCredentials()
}

// changeFiles changes the files of certificates that are given.
func (o *contextFlags) changeFiles(cmd *cobra.Command, of *command.Context) error {
	for flag, part := range map[string]struct {
		value string
		into  *string
	}{
		"certificate-authority": {o.authority, &of.CertificateAuthority},
		"client-certificate":    {o.certificate, &of.ClientCertificate}, "client-key": {o.key, &of.ClientKey},
	} {
		if !cmd.Flags().Changed(flag) {
			continue
		}
		*part.into = part.value
		if part.value == "" {
			continue
		}
		path, err := filepath.Abs(part.value) // commands run in any folder
		if err != nil {
			return err
		}
		*part.into = path
	}
	if (of.ClientCertificate == "") != (of.ClientKey == "") {
		return command.Usagef("--client-certificate and --client-key go together")
	}
	return nil
}

func deleteContext(a *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "delete-context NAME", Short: "Delete a context", Args: command.RequireArgs(1),
		Long:    "Deletes a context of the file. What chandler login keeps for its address stays: see chandler logout.",
		Example: "  chandler config delete-context north",
		RunE: func(_ *cobra.Command, args []string) error {
			err := a.ChangeContexts(func(f *command.Contexts) error {
				if _, err := f.Find(args[0]); err != nil {
					return err
				}
				f.Contexts = slices.DeleteFunc(f.Contexts, func(of command.Context) bool { return of.Name == args[0] })
				if f.Current == args[0] {
					f.Current = ""
				}
				return nil
			})
			if err != nil {
				return err
			}
			return a.Say("Deleted context %q.", args[0])
		},
	}
}

func viewContexts(a *command.Env) *cobra.Command {
	o := printer.Output{Format: printer.FormatYAML}
	var raw bool
	c := &cobra.Command{
		Use: "view", Short: "Show the file of contexts, without tokens", Args: cobra.NoArgs,
		Long: `Shows the file of contexts. Tokens, and the variables of programs that give tokens, are shown with --raw
only.`,
		Example: "  chandler config view\n  chandler config view -o jsonpath='{.contexts[*].name}'",
		RunE: func(*cobra.Command, []string) error {
			if err := printer.CheckDocument(o); err != nil {
				return err
			}
			f, err := a.Contexts()
			if err != nil {
				return err
			}
			for i := range f.Contexts {
				if !raw {
					f.Contexts[i] = hidden(f.Contexts[i])
				}
			}
			return o.Write(a.Out, nil, []printer.Item{{Value: f}}, true)
		},
	}
	c.Flags().BoolVar(&raw, "raw", false, "show tokens and variables, too")
	c.Flags().StringVarP(&o.Format, "output", "o", o.Format, "yaml, json, jsonpath=TEMPLATE or go-template=TEMPLATE")
	return c
}
