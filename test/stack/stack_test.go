package stack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A compiler may take as long as it needs: the bound of a start begins when the programs are there.
func TestCompilingHasNoBound(t *testing.T) {
	// A go command that only makes the file which says that it was let run to its end.
	tools := t.TempDir()
	ran := filepath.Join(tools, "ran")
	script := "#!/bin/sh\n: >" + ran + "\n"
	if err := os.WriteFile(filepath.Join(tools, "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", tools+string(filepath.ListSeparator)+os.Getenv("PATH"))
	_, err := Start(t.Context(), Options{Dir: t.TempDir(), bound: time.Nanosecond})
	if err == nil || strings.Contains(err.Error(), "build") {
		t.Errorf("start says %v; only what comes after the build is bounded", err)
	}
	if _, err := os.Stat(ran); err != nil {
		t.Errorf("nothing was compiled: %v", err)
	}
}
