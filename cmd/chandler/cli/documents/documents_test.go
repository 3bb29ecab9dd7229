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
	files, err := expand(dir, false)
	if err != nil || len(files) != 3 || filepath.Base(files[0]) != "a.yaml" {
		t.Errorf("expand = %v, %v", files, err)
	}
	for _, f := range []string{"below/z.yaml", ".git/x.yaml", "below/..data/y.yaml"} {
		at := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if flat, err := expand(link, false); err != nil || len(flat) != 3 {
		t.Errorf("a link to the folder: %v, %v", flat, err)
	}
	files, err = expand(dir, true)
	if err != nil || len(files) != 4 || !strings.HasSuffix(files[2], "z.yaml") {
		t.Errorf("with the folders below: %v, %v", files, err)
	}
	if _, err := expand(t.TempDir(), false); err == nil || !strings.Contains(err.Error(), "holds no .yaml") {
		t.Errorf("an empty folder: %v", err)
	}
}
