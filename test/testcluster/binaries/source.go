package binaries

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
)

// Module makes the programs; it lies below the repository.
const Module = "tools/k8s"

// pinFiles say what they are.
var pinFiles = []string{Module + "/go.mod", Module + "/go.sum", Module + "/main.go"}

// recipe is part of the key: raise it when the way of building changes and the pin files do not.
const recipe = "2"

// source is what a set is built from.
type source struct {
	root    string // of the repository
	cache   string // where sets are kept
	version string // of Kubernetes, as v1.34.4
	key     string
}

// set is where the programs lie once they are built.
func (s *source) set() Set { return Set{dir: filepath.Join(s.cache, "k8s", s.key, "bin")} }

func findSource() (source, error) {
	root, err := findRoot()
	if err != nil {
		return source{}, err
	}
	s := source{root: root}
	if s.cache, err = cache(root); err != nil {
		return source{}, err
	}
	err = s.readPins()
	return s, err
}

// cache is where CHANDLER_CACHE says, or one that all checkouts of a user share, since the key of a set names all that
// it is made of. Who has no folder for caches gets one in the checkout.
func cache(root string) (string, error) {
	if override := os.Getenv("CHANDLER_CACHE"); override != "" {
		return filepath.Abs(override)
	}
	shared, err := os.UserCacheDir()
	if err != nil {
		return filepath.Join(root, ".cache"), nil //nolint:nilerr // neither HOME nor XDG_CACHE_HOME is set
	}
	return filepath.Join(shared, "chandler"), nil
}

// findRoot walks up from the working directory: tests run in the directory of their package.
func findRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if exists(filepath.Join(dir, pinFiles[0])) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no %s in %s or above it: run inside the repository", pinFiles[0], start)
		}
	}
}

var kubernetesVersion = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v\S+)`)

// readPins takes the version from go.mod and makes the key from everything that decides about the bytes.
func (s *source) readPins() error {
	hash := sha256.New()
	fmt.Fprintln(hash, recipe, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for i, name := range pinFiles {
		data, err := os.ReadFile(filepath.Join(s.root, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(data), data)
		if i > 0 {
			continue
		}
		match := kubernetesVersion.FindSubmatch(data)
		if match == nil {
			return errors.New(name + " does not require k8s.io/kubernetes")
		}
		s.version = string(match[1])
	}
	s.key = fmt.Sprintf("%s-%s-%s", s.version, runtime.Version(), hex.EncodeToString(hash.Sum(nil))[:12])
	return nil
}
