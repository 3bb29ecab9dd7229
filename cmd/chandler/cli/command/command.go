// Package command is what all commands share: streams, settings and the client, errors with their exit statuses, and
// suggestions for misspelt names.
package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/plain"
	"github.com/chandler-fleet/chandler/cmd/chandler/signin"
)

// Env is one run of the command line.
type Env struct {
	Streams

	Config  string // path given by --config
	Context string // name given by --context
	URL     string
	Token   string

	warned bool // of a file of contexts that others may read
}

// Logger logs to standard error.
func (a *Env) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(a.Err, nil)) }

// Streams is what the command line takes from its process.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	Env func(name string) (string, bool)
	Now func() time.Time
	// Terminal says that a person reads Err and types into In: only then is anything asked.
	Terminal bool
	// Columns are those of the terminal that shows Out, 0 where it is none: then no line is broken.
	Columns int
	// Program is how the command line was called where that is not by its own name.
	Program string
}

// Client returns the client for the address and token that flags, environment or file name.
func (a *Env) Client() (*client.Client, error) {
	s, err := a.Settings()
	if err != nil {
		return nil, err
	}
	c, err := client.NewWith(s.URL, s.Token, s.Certificates)
	if err != nil {
		return nil, Usagef("%w", err)
	}
	if s.Token != "" || s.Certificates.Client != "" {
		return c, nil
	}
	token, err := a.signedIn(s)
	if err == nil && token == "" {
		err = fmt.Errorf("you have no token for %s: chandler login, --token, or CHANDLER_TOKEN", s.URL)
	}
	if err != nil {
		return nil, Refused(err)
	}
	if c, err = client.NewWith(s.URL, token, s.Certificates); err != nil {
		return nil, Usagef("%w", err)
	}
	return c, nil
}

// signedIn is the token of the context's program, or of chandler login.
func (a *Env) signedIn(s Settings) (string, error) {
	if s.Exec != nil {
		return signin.Exec(context.Background(), *s.Exec, a.Terminal, a.Err, a.Now)
	}
	return signin.Token(context.Background(), a.Credentials(), s.URL, a.Now)
}

// Run is the RunE of a command that calls the API: do gets the client and the arguments.
func (a *Env) Run(
	do func(ctx context.Context, c *client.Client, args []string) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.Client()
		if err != nil {
			return err
		}
		return do(cmd.Context(), c, args)
	}
}

// Say writes one line of a result.
func (a *Env) Say(format string, args ...any) error {
	_, err := fmt.Fprintln(a.Out, plain.Text(fmt.Sprintf(format, args...)))
	return err
}
