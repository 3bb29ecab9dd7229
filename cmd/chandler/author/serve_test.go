package author_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/chandler-fleet/chandler/cmd/chandler/author"
	api "github.com/chandler-fleet/chandler/libs/registryapi"
)

// command finds a command by its name.
func command(t *testing.T, env author.Env, name string) *cobra.Command {
	t.Helper()
	all := author.Commands(env)
	i := slices.IndexFunc(all, func(c *cobra.Command) bool { return c.Name() == name })
	if i < 0 {
		t.Fatalf("there is no command %s", name)
	}
	c := all[i]
	c.SilenceErrors, c.SilenceUsage = true, true
	return c
}

func noEnv(string) (string, bool) { return "", false }

// TestServe: a catalog answers over gRPC as a running catalog does, and ends when it is interrupted
// (R-CAT-62, R-CAT-70).
func TestServe(t *testing.T) {
	t.Parallel()
	said, says := io.Pipe()
	c := command(t, author.Env{Out: io.Discard, Err: says, Lookup: noEnv}, "serve")
	c.SetArgs([]string{filepath.Join("..", "..", "..", "examples", "catalog"), "--listen", "127.0.0.1:0"})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(c.ExecuteContext(ctx), says.Close()) }()
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "serving 6 packages of ") {
		t.Fatalf("%q, %v, %v", line, err, <-ended)
	}
	address := strings.TrimSpace(line[strings.LastIndex(line, " on ")+len(" on "):])
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	health, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil || health.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health: %v, %v", health, err)
	}
	p, err := api.NewRegistryClient(conn).GetPackage(ctx, &api.GetPackageRequest{Name: "tidegauge"})
	if err != nil || p.GetDefaultChannelName() != "steady" {
		t.Errorf("package: %v, %v", p, err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	// What is served can be read again, as a reference.
	if got := heads(t, "grpc://"+address, "--insecure"); got != heads(
		t, filepath.Join("..", "..", "..", "examples", "catalog")) {
		t.Errorf("read from the server:\n%s", got)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the ordered stop: %v", err)
	}
}

// heads lists the channels of a reference with their heads.
func heads(t *testing.T, ref string, flags ...string) string {
	t.Helper()
	var out, said strings.Builder
	all := author.ListCommands(author.Env{Out: &out, Err: &said, Lookup: noEnv})
	c := all[slices.IndexFunc(all, func(c *cobra.Command) bool { return c.Name() == "channels" })]
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(append([]string{ref}, flags...))
	if err := c.ExecuteContext(t.Context()); err != nil || !strings.Contains(out.String(), "tidegauge") {
		t.Fatalf("%s: %v\n%s%s", ref, err, out.String(), said.String())
	}
	return out.String()
}

// TestReferences: the same catalog in an archive, in an OCI layout and in one file is the same (R-CAT-60).
func TestReferences(t *testing.T) {
	t.Parallel()
	examples := filepath.Join("..", "..", "..", "examples", "catalog")
	want := heads(t, examples)
	dir := t.TempDir()
	do(t, "migrate", examples, filepath.Join(dir, "documents"))
	for name, ref := range map[string]string{
		"archive": archive(t, filepath.Join(dir, "documents"), filepath.Join(dir, "catalog.tar.gz")),
		"layout":  layout(t, filepath.Join(dir, "documents"), filepath.Join(dir, "layout")),
	} {
		if got := heads(t, ref); got != want {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// TestInterrupted: a command that is interrupted says so and leaves nothing half-written.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	to := filepath.Join(t.TempDir(), "below")
	var out, said strings.Builder
	for _, args := range [][]string{
		{"migrate", filepath.Join("..", "..", "..", "examples", "catalog"), filepath.Join(to, "out")},
		{"render", filepath.Join("..", "..", "..", "examples", "catalog")},
		{
			"prune", filepath.Join("..", "..", "..", "examples", "catalog"), "--keep", "buoy", "--to",
			filepath.Join(to, "out"),
		},
	} {
		c := command(t, author.Env{Out: &out, Err: &said, Lookup: noEnv}, args[0])
		c.SetArgs(args[1:])
		err := c.ExecuteContext(ctx)
		status, ok := errors.AsType[*author.ExitError](err)
		if !ok || status.Code != 2 || !strings.Contains(err.Error(), "interrupted") {
			t.Errorf("%s: got %v", args[0], err)
		}
	}
	left, err := filepath.Glob(filepath.Join(to, "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if out.Len() > 0 {
		t.Errorf("written: %s", out.String())
	}
}
