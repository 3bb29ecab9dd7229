package executor

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDecisionsArePure: the files decide*.go of the stages take values. They know no context, no client, no clock and
// no worker, so that every decision can be tested in a table.
func TestDecisionsArePure(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*/decide*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_test.go") })
	if len(files) < 6 {
		t.Fatalf("only %v", files)
	}
	for _, file := range files {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range parsed.Imports {
			path := strings.Trim(i.Path.Value, `"`)
			if slices.Contains([]string{"context", "os", "net", "net/http", "log/slog", "sync"}, path) ||
				strings.HasPrefix(path, "k8s.io/client-go") {
				t.Errorf("%s imports %s", file, path)
			}
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.SelectorExpr:
				of, _ := x.X.(*ast.Ident)
				if x.Sel.Name == "Env" || of != nil && of.Name == "time" && x.Sel.Name == "Now" {
					t.Errorf("%s: %s takes more than values", set.Position(x.Pos()), x.Sel.Name)
				}
			case *ast.FuncDecl:
				if x.Recv == nil {
					break
				}
				if of, ok := x.Recv.List[0].Type.(*ast.Ident); ok && of.Name == "worker" {
					t.Errorf("%s: %s is a method of worker", set.Position(x.Pos()), x.Name.Name)
				}
			}
			return true
		})
	}
}
