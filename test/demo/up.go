package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/test/demo/internal/handover"
	"github.com/chandler-fleet/chandler/test/internal/api"
	"github.com/chandler-fleet/chandler/test/internal/proc"
)

// errInterrupted is what somebody reads who pressed Ctrl-C.
var errInterrupted = errors.New("interrupted; nothing is left running")

// up sets everything up afresh and plays the scenes. When it is interrupted or fails it leaves nothing behind.
func up(ctx context.Context, s settings) (err error) {
	n := newNarrator()
	if s.record != "" {
		n.record = &recording{}
	}
	headline := "Chandler, the demo: two clusters, one catalog, and what is decided between them."
	if s.fleet {
		headline = fmt.Sprintf("Chandler, the demo of a fleet: %d clusters, one intent, and a version that stops itself.",
			len(handover.FleetNames)+s.spokes)
	}
	n.line(headline)
	if err := down(ctx, s.dir); err != nil {
		return fmt.Errorf("stop the demo before: %w", err)
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	playing, fail := context.WithCancelCause(ctx)
	w, err := openWorkshop(n, fail, s.fleet)
	if err != nil {
		return err
	}
	defer func() {
		fail(nil)
		w.close()
		n.end()
		if err != nil {
			err = abandon(ctx, n, s.dir, err)
		}
	}()
	p := &play{narrator: n, workshop: w, dir: s.dir, names: handover.ClusterNames}
	if s.fleet {
		p.names, p.spokes = handover.FleetNames, s.spokes
	}
	err = p.all(playing, s)
	// Why everything was ended says more than what was under way then.
	if cause := context.Cause(playing); cause != nil && ctx.Err() == nil {
		err = cause
	}
	if err != nil {
		return err
	}
	if s.record != "" {
		if err := n.record.write(s.record); err != nil {
			return err
		}
	}
	return p.farewell(s)
}

// abandon cleans up after a failure, and keeps the logs if nobody wanted it.
func abandon(ctx context.Context, n *narrator, dir string, err error) error {
	n.line("")
	n.say("cleaning up …")
	if ctx.Err() != nil {
		return errors.Join(errInterrupted, down(ctx, dir))
	}
	return errors.Join(err, saveLogs(dir), down(ctx, dir))
}

// startKeeper starts the process that owns everything from now on.
func (p *play) startKeeper() error {
	args := []string{"keep", p.dir, p.bin}
	if p.spokes > 0 {
		args = []string{"fleet", strconv.Itoa(p.spokes), p.dir, p.bin}
	}
	keeper, err := proc.Start(proc.Spec{
		Name: "keeper", Path: filepath.Join(p.bin, "keeper"), Env: os.Environ(),
		Args: append(args, p.names...),
		Dir:  p.root, Log: filepath.Join(p.dir, handover.ProgressFile), Outlive: true,
	})
	if err != nil {
		return err
	}
	p.keeper = keeper
	p.words = &follower{path: keeper.Log()}
	return handover.Write(p.dir, handover.KeeperFile, keeper.ID())
}

// awaitKeeper waits until the keeper has written a file, and shows how far it is.
func (p *play) awaitKeeper(ctx context.Context, what, file string, v any) error {
	return p.await(ctx, what, 0, func(context.Context) (string, bool, error) {
		p.words.look()
		there, err := handover.Read(p.dir, file, v)
		if failure := p.keeper.Failure(); failure != nil {
			return "", false, failure
		}
		return p.words.last, there, err
	})
}

// stopBound is how long the keeper may take to end everything; it kills, so it needs a second.
const stopBound = 30 * time.Second

// down ends the keeper and with it everything, and removes the directory.
func down(ctx context.Context, dir string) error {
	var id proc.ID
	there, err := handover.Read(dir, handover.KeeperFile, &id)
	if err != nil {
		return err
	}
	if !there {
		return os.RemoveAll(dir) // nothing runs; a directory without a keeper is of no use
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), stopBound,
		fmt.Errorf("not ended within %s", stopBound))
	defer cancel()
	if err := id.Terminate(ctx); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// farewell says what is there to be used.
func (p *play) farewell(s settings) error {
	suppose, operators := "chandler plan --cluster west -f ", "chandler get operators"
	switch {
	case s.fleet:
		operators = "chandler status"
		suppose = "chandler fleet map lighthouse"
	case s.catalog == "":
		suppose += quote([]string{filepath.Join(p.root, "examples", "demo", "east.yaml")})
	default: // what east has, on west
		suppose += quote([]string{filepath.Join(p.dir, "east.yaml")})
	}
	env := filepath.Join(p.dir, "env")
	text := fmt.Sprintf("export %s\nexport PATH=%s:$PATH\n", strings.Join(p.env, "\nexport "), p.bin)
	if err := os.WriteFile(env, []byte(text), 0o600); err != nil {
		return err
	}
	p.line("")
	p.line(p.bold("All of it keeps running; this took " + time.Since(p.begin).Round(time.Second).String()))
	p.say("API      " + p.api.URL)
	p.say("OpenAPI  " + p.api.URL + "/api/v1/openapi.json")
	p.say("token    " + p.api.Token)
	p.say("")
	p.say("Commands to try, and one to end it:")
	for _, command := range []string{
		". " + quote([]string{env}),
		operators,
		suppose,
		"chandler events --follow",
		"make demo-down",
	} {
		p.say("  " + command)
	}
	return nil
}

// connect lets the command line tool and the client find the API.
func (p *play) connect(s handover.Stack) {
	p.api = api.New(s.URL, s.Token)
	p.env = []string{"CHANDLER_URL=" + s.URL, "CHANDLER_TOKEN=" + s.Token}
}

// saveLogs keeps the logs of a failed run beside the directory, which goes away.
func saveLogs(dir string) error {
	kept := dir + "-failed"
	if err := os.RemoveAll(kept); err != nil {
		return err
	}
	for _, logs := range []string{filepath.Join("stack", "logs"), handover.ProgressFile} {
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
