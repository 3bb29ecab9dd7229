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

// What was taken from the cache stays as it is when somebody builds other programs into it.
func TestTakenProgramStays(t *testing.T) {
	kept, mine := filepath.Join(t.TempDir(), "program"), filepath.Join(t.TempDir(), "program")
	for _, content := range []string{"first", "second"} {
		if err := os.Remove(kept); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.WriteFile(kept, []byte(content), 0o755); err != nil { // as the go command does
			t.Fatal(err)
		}
		if content == "second" {
			got, err := os.ReadFile(mine)
			if err != nil || string(got) != "first" {
				t.Errorf("what was taken first is %q, %v", got, err)
			}
		}
		if err := take(kept, mine); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(mine)
		if err != nil || info.Mode().Perm()&0o100 == 0 {
			t.Errorf("the taken program cannot be run: %v, %v", info, err)
		}
	}
}
