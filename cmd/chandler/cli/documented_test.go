package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// documented is one line of a document that calls chandler.
type documented struct {
	place string // file and line
	words []string
	// into is the file that takes the output, "" for none; more are appended to it.
	into string
	more bool
}

// documentedCommands are the lines of a document's shell blocks that call chandler.
func documentedCommands(t *testing.T, root, file string) (out []documented) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	shell := false
	for i, line := range strings.Split(string(raw), "\n") {
		if strings.HasPrefix(line, "```") {
			shell = line == "```sh"
			continue
		}
		if !shell || !strings.HasPrefix(strings.TrimSpace(line), "chandler ") {
			continue
		}
		d := documented{place: fmt.Sprintf("%s:%d", file, i+1), words: shellWords(line)[1:]}
		if n := len(d.words); n > 2 && (d.words[n-2] == ">" || d.words[n-2] == ">>") {
			d.into, d.more, d.words = d.words[n-1], d.words[n-2] == ">>", d.words[:n-2]
		}
		out = append(out, d)
	}
	return out
}

// shellWords are the words of a line as a shell reads it, as far as documents write: quotes, and a comment at the end.
func shellWords(line string) (words []string) {
	for _, w := range regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`).FindAllString(line, -1) {
		if strings.HasPrefix(w, "#") {
			break
		}
		if q := w[0]; len(w) > 1 && (q == '\'' || q == '"') && w[len(w)-1] == q {
			w = w[1 : len(w)-1]
		}
		words = append(words, w)
	}
	return words
}

// elsewhere are commands that cannot run in this test, by their beginning, each with the reason. Their command, flags and
// arguments are checked all the same.
var elsewhere = map[string]string{
	"catalog add harbour --image registry.example.com/": "an image of a registry on another host",
	"catalog add examples --directory /catalogs/":       "a path in the container of the indexer",
	"catalog diff registry.test/":                       "an image of a registry on another host",
	"catalog list packages registry.test/":              "an image of a registry on another host",
	"catalog prune registry.test/":                      "an image of a registry on another host",
	"catalog compose":                                   "its references are images of registries on other hosts",
	"catalog mirror-list mine":                          "mine is made by a command that cannot run here",
	"events --follow":                                   "it does not end",
	"catalog serve":                                     "it does not end",
	"cluster add east-1 --kubeconfig FILE":              "FILE stands for the reader's own",
	"describe operator":                                 "an operator that is installed needs a cluster",
	"plan check":                                        "what is in the way is asked of a cluster",
	"rollback":                                          "an operator that is installed needs a cluster",
	"uninstall":                                         "an operator that is installed needs a cluster",
	"why":                                               "an operator that is installed needs a cluster",
	"explain subscription/tidegauge":                    "a dependency is subscribed to once it is installed, which needs a cluster",
}

// elsewhere is the beginning by which a command is said not to run here, "" where it does.
func (d documented) elsewhere() string {
	for beginning := range elsewhere {
		if strings.HasPrefix(strings.Join(d.words, " "), beginning) {
			return beginning
		}
	}
	return ""
}

// reader is somebody who follows one document line by line, in a folder of their own.
type reader struct {
	t    *testing.T
	root string // of the repository
	env  map[string]string
}

func (r *reader) streams(out io.Writer) Streams {
	return Streams{In: strings.NewReader(""), Out: out, Err: out, Now: time.Now, Env: func(name string) (string, bool) {
		v, ok := r.env[name]
		return v, ok
	}}
}

// chandler runs one command line and returns what it wrote.
func (r *reader) chandler(words ...string) (status int, out string) {
	var b bytes.Buffer
	status = Main(r.t.Context(), r.streams(&b), words)
	return status, b.String()
}

// must runs a command that prepares or ends a document's world.
func (r *reader) must(words ...string) string {
	r.t.Helper()
	status, out := r.chandler(words...)
	if status != 0 {
		r.t.Fatalf("chandler %s: status %d\n%s", strings.Join(words, " "), status, out)
	}
	return out
}

// until repeats a command until it writes something that fits.
func (r *reader) until(want string, words ...string) string {
	r.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		_, out := r.chandler(words...)
		if found := regexp.MustCompile(want).FindString(out); found != "" {
			return found
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("chandler %s: within a minute no %q\n%s", strings.Join(words, " "), want, out)
		}
	}
}

// stands is what a word of a document stands for here.
func (r *reader) stands(word string) string {
	r.t.Helper()
	switch image, isImage := strings.CutPrefix(word, "registry.test/ops/tidegauge-bundle:v"); {
	case word == "install-7xk2p":
		return r.until(`install-\w{5}`, "get", "installplans", "--cluster", "east", "--phase", "RequiresApproval", "--no-headers")
	case word == "sha256:3f0c…":
		return r.until("sha256:[0-9a-f]{64}", "get", "catalog", "harbour", "-o", "yaml")
	case isImage: // what an image would hold lies in the examples
		return filepath.Join(r.root, "examples", "catalog", "tidegauge", image)
	default:
		return word
	}
}

// follow runs a line, or checks its form where it cannot run here.
func (r *reader) follow(d documented) {
	r.t.Helper()
	line := strings.Join(d.words, " ")
	if beginning := d.elsewhere(); beginning != "" {
		if err := parses(r.streams(io.Discard), d.words); err != nil {
			r.t.Errorf("%s: chandler %s (not run: %s): %v", d.place, line, elsewhere[beginning], err)
		}
		return
	}
	words := make([]string, len(d.words))
	for i, w := range d.words {
		words[i] = r.stands(w)
	}
	status, out := r.chandler(words...)
	if status != 0 {
		r.t.Errorf("%s: chandler %s: status %d\n%s", d.place, line, status, out)
		return
	}
	if d.into == "" {
		return
	}
	flag := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if d.more {
		flag = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	}
	f, err := os.OpenFile(d.into, flag, 0o600)
	if err == nil {
		_, err = f.WriteString(out)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// parses checks that a command, its flags and the number of its arguments are there.
func parses(s Streams, words []string) error {
	c, rest, err := newRoot(s).Find(words)
	if err != nil {
		return err
	}
	if err := c.ParseFlags(rest); err != nil {
		return err
	}
	if !c.Runnable() {
		return fmt.Errorf("%s is no command", c.CommandPath())
	}
	return c.ValidateArgs(c.Flags().Args())
}

// files are what the documents take for granted in the folder of their reader.
func (r *reader) files(catalog bool) {
	r.t.Helper()
	examples := os.DirFS(filepath.Join(r.root, "examples"))
	sub := func(dir string) fs.FS {
		f, err := fs.Sub(examples, dir)
		if err != nil {
			r.t.Fatal(err)
		}
		return f
	}
	read := func(file string) string {
		raw, err := os.ReadFile(filepath.Join(r.root, filepath.FromSlash(file)))
		if err != nil {
			r.t.Fatal(err)
		}
		return string(raw)
	}
	policy, _, _ := strings.Cut(strings.SplitN(read("docs/policies.md"), "```yaml\n", 2)[1], "```")
	cases := filepath.Join(r.root, "services", "resolver", "conformance", "testdata", "semantic")
	dirs := map[string]fs.FS{"cases": os.DirFS(cases), "tidegauge/1.1.0": sub("catalog/tidegauge/1.1.0"), "v1": sub("catalog")}
	if catalog {
		dirs["catalog"] = sub("catalog")
	}
	for dir, from := range dirs {
		if err := os.CopyFS(dir, from); err != nil {
			r.t.Fatal(err)
		}
	}
	script := read("cmd/chandler/conformance/testdata/script/resolve.txtar")
	section := func(name string) string {
		text, _, _ := strings.Cut(strings.SplitN(script, "-- "+name+" --\n", 2)[1], "\n-- ")
		return text + "\n"
	}
	if err := os.MkdirAll("catalogs", 0o750); err != nil {
		r.t.Fatal(err)
	}
	for name, content := range map[string]string{
		"east.kubeconfig":    documentedKubeconfig,
		"subscription.yaml":  strings.Replace(read("examples/demo/east.yaml"), "Automatic", "Manual", 1),
		"policy.yaml":        policy,
		"namespace.json":     section("harbour.json"),
		"upgrade.json":       section("harbour.json"),
		"catalogs/sea.jsonl": section("catalogs/sea.jsonl"),
		"README.md":          "Reads the tide.\n",
		"logo.svg":           `<svg xmlns="http://www.w3.org/2000/svg"/>`,
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(r.t.Context(), "tar", "-czf", "v1.tar.gz", "-C", "v1", ".").CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
	if err := os.MkdirAll("catalog/tidegauge", 0o750); err != nil {
		r.t.Fatal(err)
	}
}

const documentedKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: abc}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`

// followDocuments runs every command of the README and of the documents in their order: what a newcomer copies works.
// Commands that need a cluster or another host are named with the reason, and their form is checked.
func followDocuments(t *testing.T, root string, env map[string]string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	files = append([]string{filepath.Join(root, "README.md")}, files...)
	used := map[string]bool{}
	for _, file := range files {
		name, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		commands := documentedCommands(t, root, name)
		if len(commands) == 0 {
			continue
		}
		for _, d := range commands {
			used[d.elsewhere()] = true
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Chdir(t.TempDir())
			r := &reader{t: t, root: root, env: env}
			r.files(name != "docs/authoring.md")
			if name == "README.md" {
				r.must("catalog", "add", "harbour", "--directory", "v1")
				r.until("Ready", "get", "catalog", "harbour")
			}
			for _, d := range commands {
				r.follow(d)
			}
			if name == "README.md" {
				for _, words := range []string{"delete policy production", "delete sub buoy --cluster east -n harbour-ops", "delete og harbour --cluster east -n harbour-ops", "catalog remove harbour", "cluster remove east"} {
					r.must(strings.Fields(words)...)
				}
			}
		})
	}
	for beginning := range elsewhere {
		if !used[beginning] {
			t.Errorf("no document has the command %q that is said not to run", beginning)
		}
	}
}

func TestShellWords(t *testing.T) {
	t.Parallel()
	got := shellWords(`chandler prune x --keep 'a:b@>=1.1.0' -o "c d" > out.yaml   # 'what' it says`)
	want := []string{"chandler", "prune", "x", "--keep", "a:b@>=1.1.0", "-o", "c d", ">", "out.yaml"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
