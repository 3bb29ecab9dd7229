package deploy_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/test/stack"
)

// tool is the path of a script below tools.
func tool(t *testing.T, name string) string {
	t.Helper()
	root, err := stack.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "tools", name)
}

// Packing the same files gives the same bytes, whatever the order in which they were made, their times, owners and
// permissions beyond being executable.
func TestPacksAlike(t *testing.T) {
	t.Parallel()
	const folder, programs = "chandler-1.2.3", "bin/chandler"
	contents := map[string]string{programs: "program\n", "LICENSE": "licence\n", "man1/chandler.1": ".TH\n"}
	pack := func(order []string, mode fs.FileMode, changed time.Time, seconds string) []byte {
		t.Helper()
		dir := filepath.Join(t.TempDir(), folder)
		for _, name := range order {
			file, mode := filepath.Join(dir, name), mode
			if name == programs {
				mode |= 0o100
			}
			err := os.MkdirAll(filepath.Dir(file), mode|0o700)
			err = errors.Join(err, os.WriteFile(file, []byte(contents[name]), mode), os.Chmod(file, mode),
				os.Chtimes(file, changed, changed))
			if err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(t.TempDir(), "packed.tar.gz")
		out, err := exec.CommandContext(t.Context(), tool(t, "pack.sh"), dir, file, seconds).CombinedOutput()
		if err != nil {
			t.Fatalf("pack.sh: %v\n%s", err, out)
		}
		packed, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return packed
	}
	first := pack([]string{programs, "LICENSE", "man1/chandler.1"}, 0o600, time.Now(), "1700000000")
	again := pack([]string{"man1/chandler.1", "LICENSE", programs}, 0o664, time.Unix(1, 0), "1700000000")
	if !bytes.Equal(first, again) {
		t.Error("the same files were packed as other bytes")
	}
	if later := pack([]string{programs}, 0o600, time.Now(), "1700000001"); bytes.Equal(first, later) {
		t.Error("other files of another time were packed as the same bytes")
	}

	z, err := gzip.NewReader(bytes.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	if z.Name != "" || !z.ModTime.IsZero() {
		t.Errorf("gzip names the file %q of %s", z.Name, z.ModTime)
	}
	var names []string
	read := tar.NewReader(z)
	for {
		h, err := read.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		want := int64(0o644)
		if h.Typeflag == tar.TypeDir || strings.HasSuffix(h.Name, programs) {
			want = 0o755
		}
		if h.Mode != want || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" ||
			h.ModTime.Unix() != 1700000000 {
			t.Errorf("%s: mode %o, owner %d %q, group %d %q, time %d", h.Name, h.Mode, h.Uid, h.Uname, h.Gid, h.Gname,
				h.ModTime.Unix())
		}
	}
	want := []string{"", "LICENSE", "bin/", programs, "man1/", "man1/chandler.1"}
	for i, name := range want {
		want[i] = folder + "/" + name
	}
	if !slices.Equal(names, want) {
		t.Errorf("packed are %q, want %q", names, want)
	}
}

// What a release cannot be made of is refused before anything is built, and dist/ stays as it was.
func TestReleaseRefuses(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(tool(t, "release.sh"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run := func(name string, args ...string) (string, error) {
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir = dir
		c.Env = append(c.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_CEILING_DIRECTORIES="+filepath.Dir(dir),
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
			"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
			"HELM="+filepath.Join(dir, "no-helm"))
		out, err := c.CombinedOutput()
		return string(out), err
	}
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, []byte(text), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	refused := func(version, want string) {
		t.Helper()
		if out, err := run("bash", "tools/release.sh", version); err == nil || !strings.Contains(out, want) {
			t.Errorf("release.sh %q ended with %v and said %q, want %q", version, err, out, want)
		}
	}
	write("tools/release.sh", string(script))
	write(".gitignore", "/dist/\n")
	const sums, before = "dist/SHA256SUMS", "of the release before\n"
	write(sums, before)
	refused("v1.2.3", "this is no work tree of git")

	for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}, {"commit", "--quiet", "-m", "All"}} {
		if out, err := run("git", args...); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	for _, version := range []string{"", "latest", "v1.2", "v01.2.3", "1.2.3.4", "v1.2.3/..", "6943dc24-dirty"} {
		refused(version, `VERSION is "`+version+`"; it must be major.minor.patch such as v1.2.3`)
	}
	// These are taken, so that it goes on to what it needs.
	for _, version := range []string{"v1.2.3", "1.2.3-rc.1", "v0.1.0-12-g6943dc24", "6943dc24"} {
		if out, err := run("bash", "tools/release.sh", version); err == nil || strings.Contains(out, "VERSION is") ||
			(!strings.Contains(out, "npm is not on this machine") && !strings.Contains(out, "there is no helm at")) {
			t.Errorf("release.sh %q ended with %v and said %q", version, err, out)
		}
	}
	write("new.txt", "new\n")
	refused("v1.2.3", "this work tree has changes that are in none; commit or remove them first:\n?? new.txt")
	if left, err := os.ReadFile(filepath.Join(dir, sums)); err != nil || string(left) != before {
		t.Errorf("%s is %q, %v", sums, left, err)
	}
}
