package archtest

import (
	"bytes"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// workspace is loaded once for all tests.
var workspace = sync.OnceValues(func() (Graph, error) { return Load(context.Background()) })

func load(t *testing.T) Graph {
	t.Helper()
	g, err := workspace()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func ours(g Graph) []Package {
	var list []Package
	for _, path := range slices.Sorted(maps.Keys(g)) {
		if g[path].Ours() {
			list = append(list, g[path])
		}
	}
	return list
}

func TestImportTable(t *testing.T) {
	t.Parallel()
	g := load(t)
	for _, p := range ours(g) {
		if p.Error != nil {
			t.Errorf("%s: %s", p.Short(), p.Error.Err)
		}
		rule, ok := ruleOf(Rules(), p.Short())
		if !ok {
			t.Errorf("%s has no rule: add it to the import table", p.Short())
			continue
		}
		for _, path := range p.Imports {
			d, ok := g[path]
			if !ok {
				d = Package{ImportPath: path}
			}
			if !allowed(rule.May, p, d) {
				t.Errorf("%s must not import %s (%s)", p.Short(), d.Short(), rule.Why)
			}
		}
	}
}

func TestBarriers(t *testing.T) {
	t.Parallel()
	g := load(t)
	for _, b := range Barriers() {
		for _, p := range ours(g) {
			if !fits(b.From, p.Short()) || slices.Contains(b.But, p.Short()) {
				continue
			}
			for _, path := range p.Deps {
				d := g[path]
				if slices.ContainsFunc(b.Never, func(m string) bool {
					return d.ImportPath == m || d.Short() == m || strings.HasPrefix(d.ImportPath, m+"/")
				}) && !excused(g, p, path, b.Through) {
					t.Errorf("%s reaches %s: %s", p.Short(), d.Short(), b.Reason)
				}
			}
		}
	}
}

// excused reports whether all that imports a package on the way from p is in a list.
func excused(g Graph, p Package, path string, through []string) bool {
	if len(through) == 0 || slices.Contains(p.Imports, path) {
		return false
	}
	return !slices.ContainsFunc(p.Deps, func(by string) bool {
		return slices.Contains(g[by].Imports, path) && !slices.Contains(through, by)
	})
}

// D5 and STYLE practice 13: time is data in pure packages.
func TestPurePackagesReadNoClock(t *testing.T) {
	t.Parallel()
	for _, p := range ours(load(t)) {
		if rule, ok := ruleOf(Rules(), p.Short()); !ok || !rule.Pure {
			continue
		}
		for _, f := range p.GoFiles {
			for _, use := range clockUses(t, filepath.Join(p.Dir, f)) {
				t.Errorf("%s/%s calls time.%s: the time comes in as data", p.Short(), f, use)
			}
		}
	}
}

func clockUses(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var uses []string
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" &&
			slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "Tick", "NewTimer", "NewTicker"},
				s.Sel.Name) {
			uses = append(uses, s.Sel.Name)
		}
		return true
	})
	return uses
}

// generated is the line that the go command knows generated files by: nobody reads or writes them.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func TestSizes(t *testing.T) {
	t.Parallel()
	for _, p := range ours(load(t)) {
		if len(p.GoFiles) > maxPackageFiles {
			t.Errorf("%s has %d files, at most %d: it is two packages", p.Short(), len(p.GoFiles), maxPackageFiles)
		}
		for _, f := range p.GoFiles {
			raw, err := os.ReadFile(filepath.Join(p.Dir, f))
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(raw, []byte{'\n'}); n > maxFileLines && !generated.Match(raw) {
				t.Errorf("%s/%s has %d lines, at most %d", p.Short(), f, n, maxFileLines)
			}
		}
	}
}

func TestTypeSizes(t *testing.T) {
	t.Parallel()
	unused := larger()
	for _, p := range ours(load(t)) {
		methods, fields := typeSizes(t, p)
		for name, n := range methods {
			if n <= maxMethods && fields[name] <= maxFields {
				continue
			}
			key := p.Short() + "." + name
			if _, ok := larger()[key]; !ok {
				t.Errorf("%s has %d methods and %d fields, at most %d and %d: it has several sides", key, n,
					fields[name], maxMethods, maxFields)
			}
			delete(unused, key)
		}
	}
	for key := range unused {
		t.Errorf("%s is within the bounds, or gone: take it from the list of larger types", key)
	}
}

// typeSizes counts the methods and the fields of each type in the non-test files of a package. An embedded field counts
// as one, and what it brings is not counted.
func typeSizes(t *testing.T, p Package) (methods, fields map[string]int) {
	t.Helper()
	methods, fields = map[string]int{}, map[string]int{}
	for _, f := range p.GoFiles {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, f), nil,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if ast.IsGenerated(file) {
			continue
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if name, ok := receiver(d); ok {
					methods[name]++
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					ts, ok := spec.(*ast.TypeSpec)
					if !ok {
						continue
					}
					methods[ts.Name.Name] += 0
					if st, ok := ts.Type.(*ast.StructType); ok {
						fields[ts.Name.Name] = st.Fields.NumFields()
					}
				}
			}
		}
	}
	return methods, fields
}

// receiver returns the name of the type that a method belongs to.
func receiver(d *ast.FuncDecl) (string, bool) {
	if d.Recv == nil {
		return "", false
	}
	expr := d.Recv.List[0].Type
	if star, ok := expr.(*ast.StarExpr); ok {
		expr = star.X
	}
	switch x := expr.(type) {
	case *ast.IndexExpr:
		expr = x.X
	case *ast.IndexListExpr:
		expr = x.X
	}
	ident, ok := expr.(*ast.Ident)
	if !ok {
		return "", false
	}
	return ident.Name, true
}

func TestDependencyBudget(t *testing.T) {
	t.Parallel()
	g := load(t)
	budgets := Budgets()
	for _, p := range ours(g) {
		module := strings.TrimPrefix(p.Module.Path, Prefix)
		if !slices.ContainsFunc(budgets, func(b Budget) bool { return b.Module == module }) {
			t.Errorf("module %s has no budget", module)
		}
	}
	for _, b := range budgets {
		direct := directModules(g, b.Module)
		if len(direct) > b.Direct {
			t.Errorf("%s imports %d modules itself, its budget is %d:\n  %s", b.Module, len(direct), b.Direct,
				strings.Join(direct, "\n  "))
		}
		linked := 0
		for _, path := range g[Prefix+b.Module].Deps {
			if !g[path].Standard {
				linked++
			}
		}
		if b.Linked > 0 && linked > b.Linked {
			t.Errorf("%s links %d packages, its budget is %d", b.Module, linked, b.Linked)
		}
		t.Logf("%-26s %2d of %2d direct modules, %4d of %4d linked packages", b.Module, len(direct), b.Direct, linked,
			b.Linked)
	}
}

func directModules(g Graph, module string) []string {
	seen := map[string]bool{}
	for _, p := range ours(g) {
		if p.Module.Path != Prefix+module {
			continue
		}
		for _, path := range p.Imports {
			if d := g[path]; !d.Standard && !d.Ours() && d.Module != nil {
				seen[d.Module.Path] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// The matchers themselves, on a made-up graph.
func TestMatchers(t *testing.T) {
	t.Parallel()
	pkg := func(short string) Package { return Package{ImportPath: Prefix + short} }
	adapter := pkg("services/resolver/internal/store")
	for name, c := range map[string]struct {
		m    string
		p, d Package
		want bool
	}{
		"one package":            {"libs/errs", pkg("libs/pg"), pkg("libs/errs"), true},
		"not what lies below it": {"libs/pg", pkg("libs/eventlog"), pkg("libs/pg/pgtest"), false},
		"a tree":                 {"libs/...", adapter, pkg("libs/pg/pgtest"), true},
		"an outside module": {
			"github.com/jackc/pgx/v5", adapter,
			Package{ImportPath: "github.com/jackc/pgx/v5/pgxpool"},
			true,
		},
		"not one that begins alike": {
			"github.com/jackc/pgx/v5", adapter,
			Package{ImportPath: "github.com/jackc/pgx/v55"},
			false,
		},
		"main takes its own app": {
			"services/*/app", pkg("services/resolver"), pkg("services/resolver/app"),
			true,
		},
		"main takes no other app": {
			"services/*/app", pkg("services/resolver"), pkg("services/gateway/app"),
			false,
		},
		"an app imports no service":     {anything, pkg("services/resolver/app"), pkg("services/gateway/app"), false},
		"the command imports services":  {anything, pkg("cmd/chandler/dev"), pkg("services/gateway/app"), true},
		"adapters do not see others":    {ownTree, adapter, pkg("services/resolver/internal/view"), false},
		"an adapter sees its own parts": {ownTree, adapter, pkg("services/resolver/internal/store/rows"), true},
		"pure packages see each other": {
			ownPure, pkg("services/resolver/resolve"), pkg("services/resolver/graph"),
			true,
		},
		"but no adapter":   {ownPure, pkg("services/resolver/resolve"), adapter, false},
		"strings are pure": {pureStd, adapter, Package{ImportPath: "strings", Standard: true}, true},
		"files are not":    {pureStd, adapter, Package{ImportPath: "os", Standard: true}, false},
	} {
		if got := matches(c.m, c.p, c.d); got != c.want {
			t.Errorf("%s: %q lets %s import %s = %v", name, c.m, c.p.Short(), c.d.Short(), got)
		}
	}
}
