package rules_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/rules"
)

const root = "../.."

// source is one file of the programs.
type source struct {
	path string
	ast  *ast.File
}

// sources are all files from which the programs are built, but for the rules themselves.
func sources(t *testing.T, set *token.FileSet) (out []source) {
	t.Helper()
	for _, dir := range []string{"libs", "services", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir() && (e.Name() == "testdata" || path == filepath.Join(root, "libs", "rules")):
				return filepath.SkipDir
			case e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			out = append(out, source{path, f})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// constants are the values of string constants, by the directory of their package and their name.
func constants(files []source) map[string]string {
	out := map[string]string{}
	for _, f := range files {
		for _, d := range f.ast.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec) // a declaration of constants has no others
				for i, name := range v.Names {
					if i >= len(v.Values) {
						continue
					}
					if text, ok := literal(v.Values[i]); ok {
						out[filepath.Dir(f.path)+"."+name.Name] = text
						out[f.ast.Name.Name+"."+name.Name] = text // as others name it
					}
				}
			}
		}
	}
	return out
}

func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}

// ruleArgument is where calls of these names have the rule.
var ruleArgument = map[string]int{"At": 1, "Addf": 1, "pattern": 4}

// TestEveryRuleIsExplained: no message names a rule that docs/rules.md does not explain. Numbers are found in every
// text of the programs, rules in words where the errors are made.
func TestEveryRuleIsExplained(t *testing.T) {
	t.Parallel()
	set := token.NewFileSet()
	files := sources(t, set)
	known := constants(files)
	numbered := regexp.MustCompile(`\bR-[A-Z]{2,4}-\d+(/[a-z][a-z-]*[a-z])?`)
	missing := map[string]string{}
	want := func(id string, at ast.Node) {
		if _, ok := rules.Find(id); !ok && id != "" {
			missing[id] = set.Position(at.Pos()).String()
		}
	}
	for _, f := range files {
		rule := func(e ast.Expr) {
			id, ok := literal(e)
			switch x := e.(type) {
			case *ast.Ident:
				id, ok = known[filepath.Dir(f.path)+"."+x.Name]
			case *ast.SelectorExpr:
				if p, is := x.X.(*ast.Ident); is {
					id, ok = known[p.Name+"."+x.Sel.Name]
				}
			}
			if ok {
				want(id, e)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				return n.Tag == nil // documentation of the API is no message
			case *ast.BasicLit:
				for _, id := range numbered.FindAllString(n.Value, -1) {
					want(id, n)
				}
			case *ast.CallExpr:
				name := ""
				switch fun := n.Fun.(type) {
				case *ast.SelectorExpr:
					name = fun.Sel.Name
				case *ast.Ident:
					name = fun.Name
				}
				if i, ok := ruleArgument[name]; ok && i < len(n.Args) {
					rule(n.Args[i])
				}
				// Checks of lint give their name alone.
				if strings.HasSuffix(f.path, ".go") && strings.Contains(f.path, "catalog/lint/") &&
					(name == "errorf" || name == "warnf") {
					if id, ok := literal(n.Args[0]); ok {
						want("R-CAT-59/"+id, n)
					}
				}
			case *ast.KeyValueExpr:
				if k, ok := n.Key.(*ast.Ident); ok && (k.Name == "Rule" || k.Name == "rule") {
					rule(n.Value)
				}
			case *ast.ValueSpec: // names of rules, and the sentences of the router that stand for them
				for i, name := range n.Names {
					if i < len(n.Values) && n.Type == nil &&
						(strings.HasPrefix(name.Name, "Rule") || f.ast.Name.Name == "rule" &&
							!strings.Contains(name.Name, "attern")) {
						rule(n.Values[i])
					}
				}
				if len(n.Names) == 1 && n.Names[0].Name == "humaRules" {
					ast.Inspect(n, func(in ast.Node) bool {
						if l, ok := in.(*ast.CompositeLit); ok && len(l.Elts) == 2 && l.Type == nil {
							rule(l.Elts[1])
						}
						return true
					})
				}
			}
			return true
		})
	}
	for id, at := range missing {
		t.Errorf("%s names the rule %s, which libs/rules does not explain: add it there, and run tools/generate.sh", at,
			id)
	}
}

// TestRulesAreWhole: each rule is there once and says what it demands; the anchors of the document are there.
func TestRulesAreWhole(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range rules.All() {
		if seen[r.ID] {
			t.Errorf("%s is there twice", r.ID)
		}
		seen[r.ID] = true
		if !strings.HasSuffix(r.Demands, ".") || r.Strictness == "" {
			t.Errorf("%s: %+v", r.ID, r)
		}
	}
	for id, want := range map[string]string{
		"R-CAT-43": "docs/rules.md#r-cat-43", "R-CAT-59/csv-name": "docs/rules.md#r-cat-59csv-name",
		"one-of": "docs/rules.md#one-of", "bundle.MaxBytes": "docs/rules.md#packagemaxthing",
	} {
		if got := rules.Link(id); got != want {
			t.Errorf("Link(%s) = %s, want %s", id, got, want)
		}
		if _, ok := rules.Find(id); !ok {
			t.Errorf("%s is not found", id)
		}
	}
	if _, ok := rules.Find("R-CAT-4321"); ok {
		t.Error("a rule that is not there was found")
	}
}

// TestDocumentIsCurrent: tools/generate.sh was run.
func TestDocumentIsCurrent(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(root, rules.Document))
	if err != nil {
		t.Fatal(err)
	}
	if string(raw) != rules.Markdown() {
		t.Errorf("%s is not current: run tools/generate.sh", rules.Document)
	}
}
