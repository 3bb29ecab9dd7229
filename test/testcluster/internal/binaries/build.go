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
)

// program is one thing to build.
type program struct {
	name   string
	module string // directory below the repository
	pkg    string
}

var programs = []program{
	{Etcd, k8sModule, "go.etcd.io/etcd/server/v3"},
	{APIServer, k8sModule, "k8s.io/kubernetes/cmd/kube-apiserver"},
	{ControllerManager, k8sModule, "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{Scheduler, k8sModule, "k8s.io/kubernetes/cmd/kube-scheduler"},
	{Kwok, kwokModule, "sigs.k8s.io/kwok/cmd/kwok"},
}

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
	out string
	log io.Writer
}

func (b builder) all(ctx context.Context) error {
	for i, p := range programs {
		what := fmt.Sprintf("building %s (%d of %d)", p.name, i+1, len(programs))
		if err := b.build(ctx, p, what); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return b.copyStages(ctx)
}

func (b builder) build(ctx context.Context, p program, what string) error {
	progress := startProgress(b.log, what)
	defer progress.stop()
	total, err := b.countStale(ctx, p)
	if err != nil {
		return err
	}
	progress.expect(total)
	args := append([]string{"build", "-v", "-o", filepath.Join(b.out, p.name)}, b.flags()...)
	cmd := b.command(ctx, p.module, append(args, p.pkg)...)
	// go build -v prints one line for each package that it compiles, and its errors in between.
	counter := &packageCounter{progress: progress}
	cmd.Stderr = counter
	if err := cmd.Run(); err != nil {
		return commandError(cmd, err, counter.rest.Bytes())
	}
	return nil
}

// countStale tells how many packages are still to be compiled, so that progress has an end.
func (b builder) countStale(ctx context.Context, p program) (int, error) {
	args := append([]string{"list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}, b.flags()...)
	out, err := b.output(ctx, p.module, append(args, p.pkg)...)
	return len(strings.Fields(out)), err
}

// copyStages takes the stages from the module kwok was built from.
func (b builder) copyStages(ctx context.Context) error {
	out, err := b.output(ctx, kwokModule, "list", "-m", "-mod=readonly", "-f", "{{.Dir}}", "sigs.k8s.io/kwok")
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

// flags give the same bytes on every machine, and the version that the API server tells its clients.
func (b builder) flags() []string {
	const version = "k8s.io/component-base/version"
	parts := strings.SplitN(strings.TrimPrefix(b.version, "v"), ".", 3)
	ldflags := fmt.Sprintf("-s -w -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s",
		version, b.version, parts[0], parts[1])
	return []string{"-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags=" + ldflags}
}

func (b builder) output(ctx context.Context, module string, args ...string) (string, error) {
	cmd := b.command(ctx, module, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", commandError(cmd, err, stderr.Bytes())
	}
	return string(out), nil
}

func (b builder) command(ctx context.Context, module string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(b.root, module)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0")
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
