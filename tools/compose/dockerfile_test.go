package compose_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// stages parses the Dockerfile as the builder does.
func stages(t *testing.T) ([]instructions.Stage, []instructions.ArgCommand) {
	t.Helper()
	f, err := os.Open(root + "/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	parsed, err := parser.Parse(f)
	if err != nil {
		t.Fatalf("Dockerfile: %v", err)
	}
	for _, w := range parsed.Warnings {
		t.Errorf("Dockerfile: %s", w.Short)
	}
	all, args, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		t.Fatalf("Dockerfile: %v", err)
	}
	return all, args
}

func find[C instructions.Command](s instructions.Stage) (found []C) {
	for _, c := range s.Commands {
		if c, ok := c.(C); ok {
			found = append(found, c)
		}
	}
	return found
}

// What is delivered holds no shell and runs as nobody.
func TestFinalImageIsEmptyButForTheProgram(t *testing.T) {
	t.Parallel()
	all, _ := stages(t)
	final := all[len(all)-1]
	if final.BaseName != "scratch" {
		t.Errorf("the final stage starts from %s", final.BaseName)
	}
	if users := find[*instructions.UserCommand](final); len(users) != 1 || users[0].User != "65532:65532" {
		t.Errorf("user: %v", users)
	}
	if entry := find[*instructions.EntrypointCommand](final); len(entry) != 1 || entry[0].PrependShell ||
		!slices.Equal(entry[0].CmdLine, []string{"/app"}) {
		t.Errorf("entry point: %v", entry)
	}
	if run := find[*instructions.RunCommand](final); len(run) > 0 {
		t.Errorf("runs %v without a shell", run)
	}
	for _, c := range find[*instructions.CopyCommand](final) {
		if c.From != all[0].Name {
			t.Errorf("copies %v from %q", c.SourcePaths, c.From)
		}
	}
}

// The builder has the Go release of the workspace, and links nothing of the system.
func TestBuilderIsThatOfTheWorkspace(t *testing.T) {
	t.Parallel()
	all, global := stages(t)
	work, err := os.ReadFile(root + "/go.work")
	if err != nil {
		t.Fatal(err)
	}
	var release string
	for _, a := range global {
		for _, kv := range a.Args {
			if kv.Key == "GO_VERSION" && kv.Value != nil {
				release = *kv.Value
			}
		}
	}
	if release == "" || !strings.HasPrefix(string(work), "go "+release) {
		t.Errorf("GO_VERSION is %q, go.work begins %.12q", release, work)
	}
	var env []string
	for _, e := range find[*instructions.EnvCommand](all[0]) {
		for _, kv := range e.Env {
			env = append(env, kv.String())
		}
	}
	if !slices.Contains(env, "CGO_ENABLED=0") || !slices.Contains(env, "GOTOOLCHAIN=local") {
		t.Errorf("environment of the builder: %v", env)
	}
}

// Each program that compose builds has a folder that the Dockerfile knows.
func TestEveryProgramHasItsPlace(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(root + "/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range ours {
		folder := filepath.Join("services", name)
		if name == "migrate" {
			name, folder = "chandler", filepath.Join("cmd", "chandler")
		}
		if _, err := os.Stat(filepath.Join(root, folder, "main.go")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(string(raw), name) {
			t.Errorf("the Dockerfile does not know %s", name)
		}
	}
}
