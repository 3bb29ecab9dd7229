package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/chandler-fleet/chandler/test/testcluster/internal/filelock"
)

// The programs of a set.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
)

// stagesFile holds kwok's own description of how nodes and pods come up; kwok has none built in.
const stagesFile = "kwok-stages.yaml"

// Set is a directory with all programs.
type Set struct{ dir string }

// Path is where a program lies.
func (s Set) Path(program string) string { return filepath.Join(s.dir, program) }

// Stages is the configuration that kwok needs.
func (s Set) Stages() string { return filepath.Join(s.dir, stagesFile) }

// Dir holds the programs, as envtest wants to know it.
func (s Set) Dir() string { return s.dir }

// Ensure returns the set for this repository and builds it if it is not there yet, telling progress to log.
// The repository is the one that the working directory lies in.
func Ensure(ctx context.Context, log io.Writer) (Set, error) {
	src, err := findSource()
	if err != nil {
		return Set{}, err
	}
	home := filepath.Join(src.cache, "k8s", src.key)
	set := Set{dir: filepath.Join(home, "bin")}
	if exists(set.dir) {
		return set, nil
	}
	if err := buildOnce(ctx, src, set.dir, log); err != nil {
		return Set{}, fmt.Errorf("build Kubernetes %s: %w", src.version, err)
	}
	return set, nil
}

// buildOnce builds the set unless another process did so while we waited for the lock.
func buildOnce(ctx context.Context, src source, dir string, log io.Writer) error {
	home := filepath.Dir(dir)
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	waiting := startProgress(log, "another process builds the Kubernetes programs; waiting")
	unlock, err := filelock.Lock(ctx, filepath.Join(home, "lock"))
	waiting.stop()
	if err != nil {
		return err
	}
	defer unlock()
	if exists(dir) {
		return nil
	}
	return buildInto(ctx, src, dir, log)
}

// buildInto builds beside dir and renames at the end, so that dir is complete whenever it is there.
func buildInto(ctx context.Context, src source, dir string, log io.Writer) error {
	unfinished := dir + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil { // of a build that was killed
		return err
	}
	if err := os.MkdirAll(unfinished, 0o755); err != nil {
		return err
	}
	b := builder{source: src, out: unfinished, log: log}
	if err := b.all(ctx); err != nil {
		return errors.Join(err, os.RemoveAll(unfinished))
	}
	return os.Rename(unfinished, dir)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
