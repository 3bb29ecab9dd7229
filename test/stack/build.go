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
	"time"
)

const modulePrefix = "github.com/chandler-fleet/chandler/"

// natsServer is the program as its authors ship it, in the version that the workspace pins.
const natsServer = "github.com/nats-io/nats-server/v2"

// Services are the four, in the order in which they are started.
var Services = []string{"catalog-indexer", "resolver", "installer", "gateway"}

// Build compiles the services, the CLI and nats-server into dir, and tells now and then that it is at it.
func Build(ctx context.Context, dir string, tell func(line string)) error {
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
	done := tellWhile(tell, "building the services")
	defer done()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the services: %w\n%s", err, bytes.TrimSpace(out))
	}
	return nil
}

// tellEvery is how long a person should at most look at a screen on which nothing moves.
const tellEvery = 3 * time.Second

// tellWhile says what is being done, now and then again, until the function that it returns is called.
func tellWhile(tell func(string), what string) (done func()) {
	begin, ticker, stop := time.Now(), time.NewTicker(tellEvery), make(chan struct{})
	tell(what)
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				tell(fmt.Sprintf("%s, %s …", what, time.Since(begin).Round(time.Second)))
			case <-stop:
				return
			}
		}
	}()
	return func() { close(stop) }
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
