package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/chandler-fleet/chandler/test/stack"
)

// errInterrupted is what somebody reads who pressed Ctrl-C.
var errInterrupted = errors.New("interrupted; nothing is left running")

// up sets everything up afresh and plays the scenes. When it is interrupted or fails it leaves nothing behind.
func up(ctx context.Context, s settings) (err error) {
	n := newNarrator()
	if err := down(ctx, s.dir); err != nil {
		return fmt.Errorf("stop the demo before: %w", err)
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	defer func() {
		if err == nil {
			return
		}
		n.say("")
		n.say("cleaning up …")
		if ctx.Err() != nil {
			err = errors.Join(errInterrupted, down(ctx, s.dir))
			return
		}
		err = errors.Join(err, saveLogs(s.dir), down(ctx, s.dir))
	}()
	n.title("Real clusters and four services")
	if n.state, err = startKeeper(ctx, s.dir, n.say); err != nil {
		return err
	}
	play := &play{narrator: n, api: stack.NewClient(n.state.URL, n.state.Token), dir: s.dir}
	suppose := filepath.Join(s.dir, "east.yaml") // what east has, on west
	if s.catalog == "" {
		suppose = filepath.Join("examples", "demo", "east.yaml")
		err = play.harbour(ctx)
	} else {
		err = play.any(ctx, s.catalog)
	}
	if err != nil {
		return err
	}
	return n.farewell(s.dir, suppose)
}

// farewell says what is there to be used. suppose is a file that can be previewed on west.
func (n *narrator) farewell(dir, suppose string) error {
	env := filepath.Join(dir, "env")
	text := fmt.Sprintf("export CHANDLER_URL=%s\nexport CHANDLER_TOKEN=%s\nexport PATH=%s:$PATH\n", n.state.URL, n.state.Token, n.state.Bin)
	if err := os.WriteFile(env, []byte(text), 0o600); err != nil {
		return err
	}
	n.title("All of it keeps running; this took %s", time.Since(n.begin).Round(time.Second))
	n.say("API    " + n.state.URL + "   (OpenAPI: " + n.state.URL + "/api/v1/openapi.json)")
	n.say("token  " + n.state.Token)
	n.say("")
	n.say("Four commands to try, and one to end it:")
	n.say("  . " + quote([]string{env}))
	n.say("  chandler get operators")
	n.say("  chandler plan --what-if -f " + quote([]string{suppose}) + " --cluster west")
	n.say("  chandler events --follow")
	n.say("  make demo-down")
	return nil
}

// saveLogs keeps the logs of a failed run beside the directory, which goes away.
func saveLogs(dir string) error {
	kept := dir + "-failed"
	if err := os.RemoveAll(kept); err != nil {
		return err
	}
	for _, logs := range []string{filepath.Join("stack", "logs"), progressFile} {
		from := filepath.Join(dir, logs)
		if _, err := os.Stat(from); err != nil {
			continue
		}
		to := filepath.Join(kept, filepath.Base(logs))
		if err := os.MkdirAll(kept, 0o755); err != nil {
			return err
		}
		if err := os.Rename(from, to); err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, "   logs are in "+quote([]string{to}))
	}
	return nil
}
