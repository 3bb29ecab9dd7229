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
)

// Env is one run of the command line.
type Env struct {
	Streams

	Config string // path given by --config
	URL    string
	Token  string
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
}

// Client returns the client for the address and token that flags, environment or file name.
func (a *Env) Client() (*client.Client, error) {
	s, err := a.Settings()
	if err != nil {
		return nil, err
	}
	c, err := client.New(s.URL, s.Token)
	if err != nil {
		return nil, Usagef("%w", err)
	}
	return c, nil
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
