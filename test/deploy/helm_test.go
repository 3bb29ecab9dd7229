package deploy_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/chandler-fleet/chandler/test/stack"
)

const (
	release = "chandler"
	// kubernetes is the version that the chart is rendered for where no cluster is asked.
	kubernetes = "1.34.0"
)

// The files of values: what must be said, and everything that can be.
var allValues = []string{"default", "full"}

// root is the folder of the repository.
func root(t testing.TB) string {
	t.Helper()
	dir, err := stack.Root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func chart(t testing.TB) string {
	t.Helper()
	return filepath.Join(root(t), "deploy", "helm", "chandler")
}

func valuesFile(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(chart(t), "ci", name+"-values.yaml")
}

var helmVersion = regexp.MustCompile(`(?m)^\s*helm\.sh/helm/v3 (v\S+)`)

// helmPath is the helm that make builds; it is built here where nobody has yet.
var helmPath = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("HELM"); path != "" {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	dir, err := stack.Root()
	if err != nil {
		return "", err
	}
	requirements, err := os.ReadFile(filepath.Join(dir, "tools", "helm", "go.mod"))
	if err != nil {
		return "", err
	}
	m := helmVersion.FindSubmatch(requirements)
	if m == nil {
		return "", errors.New("tools/helm/go.mod does not require helm")
	}
	path := filepath.Join(dir, ".cache", "bin", "helm-"+string(m[1]))
	// The Makefile knows how; with a helm that is there it does nothing.
	if out, err := exec.Command("make", "--directory", dir, path).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build helm: %w\n%s", err, out)
	}
	return path, nil
})

// helm runs helm and returns what it writes.
func helm(t testing.TB, args ...string) []byte {
	t.Helper()
	path, err := helmPath()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	// Nothing of the machine's own helm: neither its repositories nor its plugins.
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	if err := cmd.Run(); err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, errOut.Bytes())
	}
	return out.Bytes()
}

// render returns every object of the chart, hooks and tests included.
func render(t testing.TB, namespace, values string, more ...string) []*unstructured.Unstructured {
	t.Helper()
	args := []string{
		"template", release, chart(t), "--namespace", namespace, "--kube-version", kubernetes, "--values",
		valuesFile(t, values),
	}
	return decode(t, helm(t, append(args, more...)...))
}

func decode(t testing.TB, raw []byte) (objects []*unstructured.Unstructured) {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("what helm renders is no YAML: %v", err)
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}
