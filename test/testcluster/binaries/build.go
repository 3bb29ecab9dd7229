package binaries

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// bundle is the program that is all of them: it is the one by whose name it is called.
const bundle = "k8s"

// names are what it is called by; they are links to it.
var names = []string{Etcd, APIServer, ControllerManager, Scheduler, Kwok}

// stages are kwok's files for a pod that is Ready at once, a job that succeeds at once, and a node that stays Ready.
var stages = []string{
	"node/fast/node-initialize.yaml",
	"node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
	"pod/fast/pod-ready.yaml",
	"pod/fast/pod-complete.yaml",
	"pod/fast/pod-delete.yaml",
}

// builder puts a set into out.
type builder struct {
	source
	out    string
	tell   func(line string)
	beside bool // at the lowest priority
}

func (b builder) all(ctx context.Context) error {
	if err := b.build(ctx); err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Symlink(bundle, filepath.Join(b.out, name)); err != nil {
			return err
		}
	}
	return b.copyStages(ctx)
}

func (b builder) build(ctx context.Context) error {
	progress := startProgress(b.tell, "building the Kubernetes programs", reportEvery)
	defer progress.stop()
	total, err := b.countStale(ctx)
	if err != nil {
		return err
	}
	progress.expect(total)
	args := append([]string{"build", "-v", "-o", filepath.Join(b.out, bundle)}, b.flags()...)
	cmd := b.command(ctx, append(args, ".")...)
	// go build -v prints one line for each package that it compiles, and its errors in between.
	counter := &packageCounter{progress: progress}
	cmd.Stderr = counter
	if err := b.run(cmd); err != nil {
		return commandError(cmd, err, counter.rest.Bytes())
	}
	return nil
}

// lowest is the priority of a build that leaves the processors to whoever else wants them.
const lowest = 19

func (b builder) run(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	if b.beside {
		// The compilers inherit it, being started later. Where it is refused the build is merely in the way.
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, cmd.Process.Pid, lowest)
	}
	return cmd.Wait()
}

// countStale tells how many packages are still to be compiled, so that progress has an end.
func (b builder) countStale(ctx context.Context) (int, error) {
	args := append([]string{"list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}, b.flags()...)
	out, err := b.output(ctx, append(args, ".")...)
	return len(strings.Fields(out)), err
}

// copyStages takes the stages from the module kwok was built from.
func (b builder) copyStages(ctx context.Context) error {
	out, err := b.output(ctx, "list", "-m", "-mod=readonly", "-f", "{{.Dir}}", "sigs.k8s.io/kwok")
	if err != nil {
		return err
	}
	var all bytes.Buffer
	for _, name := range stages {
		data, err := os.ReadFile(filepath.Join(strings.TrimSpace(out), "kustomize", "stage", name))
		if err != nil {
			return fmt.Errorf("stages of kwok: %w", err)
		}
		fmt.Fprintf(&all, "---\n%s\n", bytes.TrimSpace(data))
	}
	return os.WriteFile(filepath.Join(b.out, stagesFile), all.Bytes(), 0o644)
}

// flags give the version that the API server tells its clients, and leave out what debuggers read, which is an eighth
// of the work of the compiler. The standard library is compiled as for everything else, so that it is shared with the
// product's own build.
func (b builder) flags() []string {
	const version = "k8s.io/component-base/version"
	parts := strings.SplitN(strings.TrimPrefix(b.version, "v"), ".", 3)
	ldflags := fmt.Sprintf("-s -w -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s",
		version, b.version, parts[0], parts[1])
	return []string{
		"-mod=readonly", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-gcflags=std=", "-ldflags=" + ldflags,
	}
}

func (b builder) output(ctx context.Context, args ...string) (string, error) {
	cmd := b.command(ctx, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := b.run(cmd); err != nil {
		return "", commandError(cmd, err, stderr.Bytes())
	}
	return stdout.String(), nil
}

// endBound is how long an interrupted build may take to end its compilers.
const endBound = 10 * time.Second

func (b builder) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(b.root, Module)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // go then ends its compilers
	cmd.WaitDelay = endBound
	return cmd
}

func commandError(cmd *exec.Cmd, err error, stderr []byte) error {
	return fmt.Errorf("%s %s: %w\n%s", filepath.Base(cmd.Path), cmd.Args[1], err, bytes.TrimSpace(stderr))
}

// packageCounter counts the lines that name a package and keeps all others.
type packageCounter struct {
	progress *progress
	partial  []byte
	rest     bytes.Buffer
}

// Write takes whole and broken lines as they come.
func (c *packageCounter) Write(data []byte) (int, error) {
	c.partial = append(c.partial, data...)
	for {
		advance, line, _ := bufio.ScanLines(c.partial, false)
		if advance == 0 {
			return len(data), nil
		}
		c.line(string(line))
		c.partial = c.partial[advance:]
	}
}

func (c *packageCounter) line(line string) {
	if line != "" && !strings.ContainsAny(line, " :#") {
		c.progress.step()
		return
	}
	c.rest.WriteString(line + "\n")
}

// logTo writes lines to a log.
func logTo(log io.Writer) func(string) {
	return func(line string) { fmt.Fprintln(log, line) }
}
