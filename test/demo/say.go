package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// quietBound is how long a person should look at a screen on which nothing moves.
const quietBound = 3 * time.Second

// narrator writes what the demo does, with the time since its start.
type narrator struct {
	out   io.Writer
	begin time.Time
	scene int
	state state
}

func newNarrator() *narrator { return &narrator{out: os.Stdout, begin: time.Now()} }

// title begins a scene.
func (n *narrator) title(format string, args ...any) {
	n.scene++
	fmt.Fprintf(n.out, "\n\033[1m%d. %s\033[0m  (%s)\n", n.scene, fmt.Sprintf(format, args...), n.since())
}

// say writes one line below the title.
func (n *narrator) say(line string) { fmt.Fprintf(n.out, "   %s\n", line) }

func (n *narrator) since() string { return time.Since(n.begin).Round(100 * time.Millisecond).String() }

// run shows a command of the CLI as a person would type it, and what it prints.
func (n *narrator) run(ctx context.Context, args ...string) (string, error) {
	fmt.Fprintf(n.out, "   \033[2m$ chandler %s\033[0m\n", quote(args))
	out, err := n.quiet(ctx, args...)
	for line := range strings.SplitSeq(strings.TrimRight(out, "\n"), "\n") {
		if line != "" {
			n.say(line)
		}
	}
	return out, err
}

// quiet runs a command of the CLI without showing it.
func (n *narrator) quiet(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(n.state.Bin, "chandler"), args...)
	cmd.Env = append(os.Environ(), "CHANDLER_URL="+n.state.URL, "CHANDLER_TOKEN="+n.state.Token)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("chandler %s: %w\n%s", quote(args), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return string(out), nil
}

// quote writes paths below the working directory as a person would.
func quote(args []string) string {
	here, err := os.Getwd()
	if err != nil {
		return strings.Join(args, " ")
	}
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = strings.TrimPrefix(a, here+string(filepath.Separator))
	}
	return strings.Join(words, " ")
}

// await asks until done, and says now and then what it still waits for.
func (n *narrator) await(ctx context.Context, what string, bound time.Duration, done func(context.Context) (detail string, ok bool, err error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("not within %s", bound))
	defer cancel()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	last := time.Now()
	for {
		detail, ok, err := done(ctx)
		if ctx.Err() == nil && err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if ok {
			return nil
		}
		if time.Since(last) > quietBound {
			n.say("… " + what + ": " + detail)
			last = time.Now()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w; last seen: %s", what, context.Cause(ctx), detail)
		case <-ticker.C:
		}
	}
}

// follower passes on the lines that are added to a file.
type follower struct {
	path string
	read int64
	rest string
	say  func(string)
}

func (f *follower) look() {
	file, err := os.Open(f.path)
	if err != nil {
		return // not there yet
	}
	defer file.Close() //nolint:errcheck // only read
	if _, err := file.Seek(f.read, io.SeekStart); err != nil {
		return
	}
	added, err := io.ReadAll(file)
	if err != nil {
		return
	}
	f.read += int64(len(added))
	lines := strings.Split(f.rest+string(added), "\n")
	f.rest = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		f.say(line)
	}
}
