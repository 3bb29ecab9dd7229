package documents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExpand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, f := range []string{"b.yml", "a.yaml", "c.json", "readme.md"} {
		if err := os.WriteFile(filepath.Join(dir, f), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := expand(dir)
	if err != nil || len(files) != 3 || filepath.Base(files[0]) != "a.yaml" {
		t.Errorf("expand = %v, %v", files, err)
	}
	if _, err := expand(t.TempDir()); err == nil || !strings.Contains(err.Error(), "holds no .yaml") {
		t.Errorf("an empty folder: %v", err)
	}
}
