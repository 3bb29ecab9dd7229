package scope_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fields are those of a struct of this package with the package that the end of their comment names as their writer.
func fields(t *testing.T, file, structName string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	writer := regexp.MustCompile(`\(([a-z]+)\)\.\s*$`)
	out := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != structName {
			return true
		}
		list, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		for _, f := range list.Fields.List {
			m := writer.FindStringSubmatch(f.Doc.Text())
			if m == nil {
				t.Errorf("%s.%s: its comment does not end with the package that writes it", structName, f.Names[0])
				continue
			}
			out[f.Names[0].Name] = m[1]
		}
		return true
	})
	return out
}

// field is the field of Scope.root that an expression lies in, "" where it lies in none.
func field(e ast.Expr, root string) string {
	for {
		switch x := e.(type) {
		case *ast.IndexExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.SelectorExpr:
			if inner, ok := x.X.(*ast.SelectorExpr); ok && inner.Sel.Name == root {
				return x.Sel.Name
			}
			e = x.X
		default:
			return ""
		}
	}
}

// written are the expressions that a node assigns to, deletes from, or takes the address of.
func written(n ast.Node) []ast.Expr {
	switch x := n.(type) {
	case *ast.AssignStmt:
		return x.Lhs
	case *ast.IncDecStmt:
		return []ast.Expr{x.X}
	case *ast.UnaryExpr:
		if x.Op == token.AND {
			return []ast.Expr{x.X}
		}
	case *ast.CallExpr:
		if f, ok := x.Fun.(*ast.Ident); ok && (f.Name == "delete" || f.Name == "clear") {
			return x.Args[:1]
		}
	}
	return nil
}

// TestWriters: what was read is replaced by a reading alone, and what stages have found out has one writer for each
// field, the one that its comment names.
func TestWriters(t *testing.T) {
	t.Parallel()
	for root, want := range map[string]map[string]string{
		"Found": fields(t, "findings.go", "Findings"), "Snapshot": fields(t, "snapshot.go", "Snapshot"),
	} {
		found := map[string]map[string]bool{}
		err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			ast.Inspect(parsed, func(n ast.Node) bool {
				for _, e := range written(n) {
					if f := field(e, root); f != "" {
						if found[f] == nil {
							found[f] = map[string]bool{}
						}
						found[f][parsed.Name.Name] = true
					}
				}
				return true
			})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for f, by := range found {
			if writers := slices.Sorted(maps.Keys(by)); !slices.Equal(writers, []string{want[f]}) {
				t.Errorf("%s.%s is written by packages %v, want %q alone", root, f, writers, want[f])
			}
		}
	}
}
