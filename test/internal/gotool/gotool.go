// Package gotool runs the go command for tests and for the demo: it downloads modules and compiles programs, tells
// how far it is, and has no bound: how long a compiler takes says nothing about what it compiles.
package gotool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Root is the folder that holds go.work.
var Root = sync.OnceValues(func() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := here; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.work in %s or above it: run this from the checkout", here)
		}
	}
})

// Cache is the folder of what is built and kept: .cache of the checkout, or where CHANDLER_CACHE says.
func Cache() (string, error) {
	if dir := os.Getenv("CHANDLER_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	root, err := Root()
	return filepath.Join(root, ".cache"), err
}

// endBound is how long an interrupted go command may take to end its compilers.
const endBound = 10 * time.Second

// command runs go in the workspace. Programs are built as they are released, without cgo, so that no C compiler is
// needed and that what was compiled for one of them is there for all.
func command(ctx context.Context, args ...string) (*exec.Cmd, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK="+filepath.Join(root, "go.work"))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // go then ends its compilers
	cmd.WaitDelay = endBound
	return cmd, nil
}

// Build compiles programs into dir, and tells every package that was compiled for them. It does not ask git, which
// refuses to answer in a checkout that belongs to somebody else. As in what ships, debug information is left out:
// linking it takes two fifths of the time.
func Build(ctx context.Context, dir string, packages []string, compiled func(pkg string)) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	cmd, err := command(ctx, append([]string{
		"build", "-v", "-buildvcs=false", "-ldflags=-s -w", "-o", dir + string(filepath.Separator),
	}, packages...)...)
	if err != nil {
		return err
	}
	return run(ctx, cmd, func(line string) bool {
		if strings.ContainsAny(line, " :#") {
			return false
		}
		compiled(line)
		return true
	})
}

// downloads is how many modules are fetched at a time. The go command takes as many as it has processors, but a
// download waits for the network.
const downloads = "GOMAXPROCS=16"

// Download fetches the modules of packages of the workspace, or of a module of its own, and tells each that was
// fetched. It returns how many packages they are made of.
func Download(ctx context.Context, module string, packages []string, fetched func(module string)) (int, error) {
	cmd, err := command(ctx, append([]string{"list", "-deps"}, packages...)...)
	if err != nil {
		return 0, err
	}
	cmd.Env = append(cmd.Env, downloads)
	if module != "" {
		cmd.Dir = filepath.Join(cmd.Dir, module)
		cmd.Env = append(cmd.Env, "GOWORK=off", "GOFLAGS=")
	}
	var names bytes.Buffer
	cmd.Stdout = &names
	err = run(ctx, cmd, func(line string) bool {
		name, found := strings.CutPrefix(line, "go: downloading ")
		if found {
			fetched(name)
		}
		return found
	})
	return bytes.Count(names.Bytes(), []byte("\n")), err
}

// run passes on what is progress, and keeps the rest for the error.
func run(ctx context.Context, cmd *exec.Cmd, progress func(line string) bool) error {
	said := &lines{progress: progress}
	cmd.Stderr = said
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return errors.Join(fmt.Errorf("go %s: %w", cmd.Args[1], err), said.rest())
}

// lines takes the standard error of a go command apart.
type lines struct {
	progress func(line string) bool
	partial  []byte
	kept     bytes.Buffer
}

// Write takes whole and broken lines as they come.
func (l *lines) Write(data []byte) (int, error) {
	l.partial = append(l.partial, data...)
	for {
		line, rest, whole := bytes.Cut(l.partial, []byte("\n"))
		if !whole {
			return len(data), nil
		}
		if text := strings.TrimSpace(string(line)); text != "" && !l.progress(text) {
			l.kept.WriteString(text + "\n")
		}
		l.partial = rest
	}
}

// rest is what was not progress, as an error.
func (l *lines) rest() error {
	text := strings.TrimSpace(l.kept.String() + string(l.partial))
	if text == "" {
		return nil
	}
	return errors.New(text)
}
