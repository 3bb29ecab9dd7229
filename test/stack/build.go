package stack

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

const modulePrefix = "github.com/chandler-fleet/chandler/"

// natsServer is the program as its authors ship it, in the version that the workspace pins.
const natsServer = "github.com/nats-io/nats-server/v2"

// Services are the four, in the order in which they are started.
var Services = []string{"catalog-indexer", "resolver", "installer", "gateway"}

// Build compiles the services, the CLI and nats-server into dir.
func Build(ctx context.Context, dir string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	packages := []string{modulePrefix + "cmd/chandler", natsServer}
	for _, s := range Services {
		packages = append(packages, modulePrefix+"services/"+s)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-o", dir + string(filepath.Separator)}, packages...)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the services: %w\n%s", err, bytes.TrimSpace(out))
	}
	return nil
}

// Root is the folder that holds go.work.
var Root = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "env", "GOWORK").Output()
	if err != nil {
		return "", fmt.Errorf("find the workspace: %w", err)
	}
	work := strings.TrimSpace(string(out))
	if work == "" || work == "off" {
		return "", fmt.Errorf("find the workspace: not inside one; run this from the checkout")
	}
	return filepath.Dir(work), nil
})
