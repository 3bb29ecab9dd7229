package deploy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The chart's README shows how an agent's socket and a plugin come into the installer: the values are taken, the
// installer has socket and plugin where its settings say, and nothing of them may be written to.
func TestReadmeKeysElsewhere(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(chart(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "* **Keys elsewhere**")
	_, rest, _ = strings.Cut(rest, "  ```yaml\n")
	example, _, found := strings.Cut(rest, "  ```\n")
	if !found {
		t.Fatal("the README has no example of keys elsewhere")
	}
	example = strings.ReplaceAll("\n"+example, "\n  ", "\n")
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	d := deliver(t, "default", "--values", file)
	pod := d.pods()["installer"]
	c := pod.Containers[0]
	env := d.environment(t, c, secretValue(t))
	mounted := func(path string) corev1.VolumeSource {
		t.Helper()
		for _, m := range c.VolumeMounts {
			if m.MountPath != path {
				continue
			}
			for _, v := range pod.Volumes {
				if v.Name == m.Name && m.ReadOnly {
					return v.VolumeSource
				}
			}
		}
		t.Fatalf("nothing is mounted at %s to be read", path)
		return corev1.VolumeSource{}
	}
	if v := mounted(filepath.Dir(env["CHANDLER_GRANT_AGENT"])); v.HostPath == nil {
		t.Errorf("the socket %q comes from %+v", env["CHANDLER_GRANT_AGENT"], v)
	}
	first, _, _ := strings.Cut(env["PATH"], ":")
	if v := mounted(first); v.PersistentVolumeClaim == nil || !v.PersistentVolumeClaim.ReadOnly {
		t.Errorf("plugins come from %+v", v)
	}
	if !known(t, "installer", newConfig(t, "installer"))["CHANDLER_GRANT_AGENT"] {
		t.Error("the installer has no setting CHANDLER_GRANT_AGENT")
	}
}
