package author

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/source/registry/server"
)

func (t *tool) serveCommand() *cobra.Command {
	var listen string
	c := &cobra.Command{
		Use:   "serve REF",
		Short: "Serve a catalog over the registry's gRPC API, for an OLM to read",
		Long: `Serves a catalog as a running catalog does: api.Registry over plain gRPC, with the standard health service
(R-CAT-70). It ends when it is interrupted; calls that run then have a little time.

` + references,
		Example: "  chandler catalog serve ./catalog --listen 0.0.0.0:50051",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return t.sources.with(c.Context(), args[0], func(r *tree) error { return t.serve(c.Context(), r, listen) })
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:50051", "address to listen on")
	t.sources.sourceFlags(c)
	return c
}

func (t *tool) serve(ctx context.Context, r *tree, listen string) (err error) {
	content, err := newContents()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, content.remove()) }()
	c, err := t.sources.load(ctx, r, load.Options{Keep: content.keep})
	if err != nil {
		return err
	}
	if err := t.reportFindings(c.Findings); err != nil {
		return err
	}
	s, err := server.New(ctx, server.Loaded(c, content.get), slog.New(slog.NewTextHandler(t.Err, nil)))
	if err != nil {
		return err
	}
	var config net.ListenConfig
	ln, err := config.Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	t.printNote("serving %s of %s on %s", count(len(c.Packages), "package"), r.name, ln.Addr())
	return s.Serve(ctx, ln)
}
