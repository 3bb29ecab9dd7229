package git_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source/archive"
	"github.com/chandler-fleet/chandler/libs/source/git"
)

// origin is a real repository on disk.
type origin struct {
	t    *testing.T
	dir  string
	repo *gogit.Repository
}

func newOrigin(t *testing.T) *origin {
	t.Helper()
	dir := t.TempDir()
	repo, err := gogit.PlainInit(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	return &origin{t, dir, repo}
}

// commit writes files (a value "-> x" makes a link) and commits the work tree.
func (o *origin) commit(files map[string]string) string {
	o.t.Helper()
	for name, text := range files {
		path := filepath.Join(o.dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o750)
		if to, ok := strings.CutPrefix(text, "-> "); ok && err == nil {
			err = os.Symlink(to, path)
		} else if err == nil {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			o.t.Fatal(err)
		}
	}
	w, err := o.repo.Worktree()
	if err != nil {
		o.t.Fatal(err)
	}
	if err := w.AddWithOptions(&gogit.AddOptions{All: true}); err != nil {
		o.t.Fatal(err)
	}
	h, err := w.Commit("x", &gogit.CommitOptions{Author: &object.Signature{
		Name: "x", Email: "x@dock.test", When: time.Unix(1, 0),
	}})
	if err != nil {
		o.t.Fatal(err)
	}
	return h.String()
}

func (o *origin) set(name plumbing.ReferenceName, commit string) {
	o.t.Helper()
	if err := o.repo.Storer.SetReference(plumbing.NewHashReference(name, plumbing.NewHash(commit))); err != nil {
		o.t.Fatal(err)
	}
}

func (o *origin) tag(name, commit string) {
	o.t.Helper()
	_, err := o.repo.CreateTag(name, plumbing.NewHash(commit),
		&gogit.CreateTagOptions{Message: "x", Tagger: &object.Signature{
			Name: "x", Email: "x@dock.test", When: time.Unix(1, 0),
		}})
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *origin) source() git.Source {
	return git.Source{Path: o.dir, Temp: o.t.TempDir(), Limits: archive.Standard()}
}

func read(t *testing.T, fsys fs.FS) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if d.Type() == fs.ModeSymlink {
			to, err := fs.ReadLink(fsys, name)
			out[name] = "-> " + to
			return err
		}
		b, err := fs.ReadFile(fsys, name)
		out[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// opened compares Probe with Open, and returns the files.
func opened(t *testing.T, s git.Source) (files map[string]string, commit string) {
	t.Helper()
	probed, err := git.Probe(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := git.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	files = read(t, tree.FS())
	if err := tree.Close(); err != nil {
		t.Error(err)
	}
	if tree.Fingerprint != probed {
		t.Errorf("Probe says %s, Open %s", probed, tree.Fingerprint)
	}
	left, err := os.ReadDir(s.Temp)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	return files, tree.Commit
}

// fixture has two commits on main, one on another branch, tags of both kinds, and a name for two things.
type fixture struct {
	*origin

	first, second, other string
}

var (
	firstFiles  = map[string]string{"catalog/p/catalog.yaml": "1\n", "README": "x"}
	secondFiles = map[string]string{"catalog/p/catalog.yaml": "2\n", "catalog/link": "-> p/catalog.yaml", "README": "x"}
)

func newFixture(t *testing.T) fixture {
	t.Helper()
	f := fixture{origin: newOrigin(t)}
	f.first = f.commit(firstFiles)
	f.second = f.commit(secondFiles)
	f.other = f.commit(map[string]string{"big": strings.Repeat("x", 100_000)})
	f.set("refs/heads/main", f.second)
	f.set("refs/heads/release/v2", f.other)
	f.set("refs/tags/light", f.first)
	f.tag("v1", f.first)
	f.tag("both", f.first)
	f.set("refs/heads/both", f.second)
	f.set("refs/heads/same", f.second)
	f.set("refs/tags/same", f.second)
	if err := f.repo.Storer.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, "refs/heads/main")); err != nil {
		t.Fatal(err)
	}
	return f
}

// transports serve one repository in every way; each returns a source for it.
func transports() map[string]func(*testing.T, fixture) git.Source {
	return map[string]func(*testing.T, fixture) git.Source{
		"disk": func(t *testing.T, f fixture) git.Source {
			t.Helper()
			return f.source()
		},
		"http": func(t *testing.T, f fixture) git.Source {
			t.Helper()
			server := httptest.NewServer(smart(t, f.dir))
			t.Cleanup(server.Close)
			return git.Source{
				URL: server.URL + "/fleet.git", Insecure: true, Temp: t.TempDir(),
				Limits: archive.Standard(),
			}
		},
		"git over http": func(t *testing.T, f fixture) git.Source {
			t.Helper()
			server := httptest.NewServer(backend(t, f.dir))
			t.Cleanup(server.Close)
			return git.Source{
				URL: server.URL + "/fleet.git/", Insecure: true, Temp: t.TempDir(),
				Limits: archive.Standard(),
			}
		},
		"ssh": func(t *testing.T, f fixture) git.Source {
			t.Helper()
			return overSSH(t, f.dir)
		},
	}
}

// TestReferences proves what a reference means, the same over every transport.
func TestReferences(t *testing.T) {
	t.Parallel()
	for name, serve := range transports() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			s := serve(t, f)
			for reference, want := range map[string]struct {
				commit string
				files  map[string]string
			}{
				"":                {f.second, secondFiles},
				"main":            {f.second, secondFiles},
				"refs/heads/main": {f.second, secondFiles},
				"light":           {f.first, firstFiles},
				"v1":              {f.first, firstFiles},
				"refs/tags/v1":    {f.first, firstFiles},
				"refs/heads/both": {f.second, secondFiles},
				"same":            {f.second, secondFiles},
				f.second:          {f.second, secondFiles},
			} {
				s.Reference = reference
				files, commit := opened(t, s)
				if diff := cmp.Diff(want.files, files); diff != "" || commit != want.commit {
					t.Errorf("%q: commit %s, want %s; %s", reference, commit, want.commit, diff)
				}
			}
			for reference, want := range map[string]struct {
				kind errs.Kind
				says string
			}{
				"v3": {
					errs.NotFound,
					"it has both, light, main, master, release/v2, same, v1",
				},
				"refs/heads/none":             {errs.NotFound, "no branch or tag"},
				"both":                        {errs.Invalid, "both a branch and a tag"},
				strings.Repeat("0", 39) + "1": {errs.NotFound, ""},
			} {
				s.Reference = reference
				_, err := git.Open(t.Context(), s)
				if errs.KindOf(err) != want.kind || !strings.Contains(err.Error(), want.says) {
					t.Errorf("%q: %v, want %s with %q", reference, err, want.kind, want.says)
				}
			}
		})
	}
}

// TestHistory proves that a commit that no reference names is found: by asking for it, or in all history.
func TestHistory(t *testing.T) {
	t.Parallel()
	for name, serve := range transports() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fixture{origin: newOrigin(t)}
			f.first = f.commit(firstFiles)
			f.second = f.commit(secondFiles)
			s := serve(t, f)
			s.Reference = f.first
			if files, commit := opened(t, s); commit != f.first || len(files) != 2 {
				t.Errorf("commit %s with %v", commit, files)
			}
		})
	}
}

// TestSubdirectory proves that only the directory asked for is written.
func TestSubdirectory(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := f.source()
	s.Subdirectory = "/catalog/p/"
	if files, _ := opened(t, s); len(files) != 1 || files["catalog.yaml"] != "2\n" {
		t.Errorf("files: %v", files)
	}
	s.Subdirectory = "catalog/none"
	if _, err := git.Open(t.Context(), s); !errs.Is(err, errs.NotFound) ||
		!strings.Contains(err.Error(), `"catalog/none"`) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

// tree stores a directory by hand, as no git would.
func (o *origin) tree(entries ...object.TreeEntry) plumbing.Hash {
	o.t.Helper()
	e := o.repo.Storer.NewEncodedObject()
	e.SetType(plumbing.TreeObject)
	w, err := e.Writer()
	if err != nil {
		o.t.Fatal(err)
	}
	for _, en := range entries {
		fmt.Fprintf(w, "%o %s\x00%s", uint32(en.Mode), en.Name, en.Hash[:])
	}
	if err := w.Close(); err != nil {
		o.t.Fatal(err)
	}
	h, err := o.repo.Storer.SetEncodedObject(e)
	if err != nil {
		o.t.Fatal(err)
	}
	return h
}

func (o *origin) blob(text string) plumbing.Hash {
	o.t.Helper()
	e := o.repo.Storer.NewEncodedObject()
	e.SetType(plumbing.BlobObject)
	w, err := e.Writer()
	if err == nil {
		_, err = w.Write([]byte(text))
	}
	if err != nil {
		o.t.Fatal(err)
	}
	h, err := o.repo.Storer.SetEncodedObject(e)
	if err != nil {
		o.t.Fatal(err)
	}
	return h
}

// point makes a commit of a tree, and HEAD of the commit.
func (o *origin) point(tree plumbing.Hash) {
	o.t.Helper()
	c := &object.Commit{
		TreeHash: tree, Author: object.Signature{When: time.Unix(1, 0)},
		Committer: object.Signature{When: time.Unix(1, 0)},
	}
	e := o.repo.Storer.NewEncodedObject()
	if err := c.Encode(e); err != nil {
		o.t.Fatal(err)
	}
	h, err := o.repo.Storer.SetEncodedObject(e)
	if err != nil {
		o.t.Fatal(err)
	}
	o.set("refs/heads/master", h.String())
}

// TestHostile proves that repositories which no honest git makes meet a named rule.
func TestHostile(t *testing.T) {
	t.Parallel()
	const file, dir, link, module = 0o100644, 0o40000, 0o120000, 0o160000
	limits := archive.Standard()
	limits.Entries, limits.EntryBytes, limits.Bytes, limits.Depth = 100, 50_000, 60_000, 4
	for name, c := range map[string]struct {
		tree func(o *origin) plumbing.Hash
		kind errs.Kind
		rule string
	}{
		"up": {func(o *origin) plumbing.Hash {
			return o.tree(object.TreeEntry{
				Name: "..", Mode: dir,
				Hash: o.tree(object.TreeEntry{Name: "x", Mode: file, Hash: o.blob("x")}),
			})
		}, errs.Invalid, archive.RuleName},
		"a slash in a name": {func(o *origin) plumbing.Hash {
			return o.tree(object.TreeEntry{Name: "a/b", Mode: file, Hash: o.blob("x")})
		}, errs.Invalid, ""},
		"a link that leaves": {func(o *origin) plumbing.Hash {
			return o.tree(object.TreeEntry{Name: "l", Mode: link, Hash: o.blob("../x")})
		}, errs.Invalid, archive.RuleLink},
		"an absolute link": {func(o *origin) plumbing.Hash {
			return o.tree(object.TreeEntry{Name: "l", Mode: link, Hash: o.blob("/etc/passwd")})
		}, errs.Invalid, archive.RuleLink},
		"a name twice": {func(o *origin) plumbing.Hash {
			return o.tree(object.TreeEntry{Name: "x", Mode: file, Hash: o.blob("1")},
				object.TreeEntry{Name: "x", Mode: file, Hash: o.blob("2")})
		}, errs.Invalid, ""},
		"a file that is missing": {func(o *origin) plumbing.Hash {
			return o.tree(object.TreeEntry{Name: "x", Mode: file, Hash: plumbing.NewHash(strings.Repeat("1", 40))})
		}, errs.Invalid, archive.RuleFormat},
		"a file too large": {func(o *origin) plumbing.Hash {
			return o.tree(object.TreeEntry{Name: "x", Mode: file, Hash: o.blob(strings.Repeat("x", 60_000))})
		}, errs.TooLarge, archive.RuleEntryBytes},
		"too deep": {func(o *origin) plumbing.Hash {
			h := o.tree(object.TreeEntry{Name: "x", Mode: file, Hash: o.blob("1")})
			for range 6 {
				h = o.tree(object.TreeEntry{Name: "d", Mode: dir, Hash: h})
			}
			return h
		}, errs.TooLarge, archive.RuleDepth},
		"a tree that is listed without end": {func(o *origin) plumbing.Hash {
			h := o.tree(object.TreeEntry{Name: "x", Mode: file, Hash: o.blob("1")})
			for range 3 {
				var e []object.TreeEntry
				for i := range 10 {
					e = append(e, object.TreeEntry{Name: fmt.Sprint(i), Mode: dir, Hash: h})
				}
				h = o.tree(e...)
			}
			return h
		}, errs.TooLarge, archive.RuleEntries},
		"nothing but a submodule": {func(o *origin) plumbing.Hash {
			return o.tree(object.TreeEntry{Name: "m", Mode: module, Hash: plumbing.NewHash(strings.Repeat("2", 40))})
		}, errs.NotFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			o.point(c.tree(o))
			s := o.source()
			s.Limits = limits
			_, err := git.Open(t.Context(), s)
			e, ok := errors.AsType[*errs.Error](err)
			if !ok || e.Kind != c.kind || c.rule != "" && e.Rule != c.rule {
				t.Errorf("%v, want %s of rule %s", err, c.kind, c.rule)
			}
			if left, err := os.ReadDir(s.Temp); err != nil || len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// TestLocal proves what is said of directories that are no repository of their own.
func TestLocal(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	bare := t.TempDir()
	if _, err := gogit.PlainClone(bare, true, &gogit.CloneOptions{URL: f.dir}); err != nil {
		t.Fatal(err)
	}
	s := f.source()
	s.Path = bare
	if files, _ := opened(t, s); len(files) != 3 {
		t.Errorf("a bare repository has %v", files)
	}
	if err := osfs.New(bare).MkdirAll("objects/info", 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bare, "objects", "info", "alternates"), []byte(f.dir), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := git.Open(t.Context(), s); !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), "borrows") {
		t.Errorf("a repository with alternates: %v", err)
	}
	s.Path = t.TempDir()
	if _, err := git.Probe(t.Context(), s); !errs.Is(err, errs.NotFound) || !strings.Contains(err.Error(), s.Path) {
		t.Errorf("no repository: %v", err)
	}
	empty := t.TempDir()
	if _, err := gogit.PlainInit(empty, true); err != nil {
		t.Fatal(err)
	}
	s.Path = empty
	if _, err := git.Probe(t.Context(), s); !errs.Is(err, errs.NotFound) {
		t.Errorf("an empty repository: %v", err)
	}
}
