package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/chandler-fleet/chandler/libs/doccommand"
)

// TestDocumentedCommands follows the README and every document line by line, with a real cluster and a registry of
// images: what a newcomer copies works, and shows what the document says.
func TestDocumentedCommands(t *testing.T) { //nolint:tparallel // one stack is the subject
	t.Parallel()
	images := newRegistry(t)
	env := images.behind("registry.example.com", "registry.test")
	w := newStackWith(t, func(service string) []string {
		if service == "catalog-indexer" {
			return env
		}
		return nil
	})
	w.borrowCluster()
	root := repository(t)
	r := &reader{world: w, root: root, images: images, env: append(env, "CHANDLER_URL="+w.Stack.URL(),
		"CHANDLER_TOKEN="+w.Stack.Token())}
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	w.must(err)
	files = append([]string{filepath.Join(root, "README.md")}, files...)
	for _, file := range files {
		text, err := os.ReadFile(file)
		w.must(err)
		name, err := filepath.Rel(root, file)
		w.must(err)
		commands := doccommand.Blocks(name, string(text), "chandler")
		if len(commands) == 0 {
			continue
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			r := r.in(t)
			r.prepare(name)
			for _, c := range commands {
				r.follow(c)
			}
		})
	}
	for line := range meanwhile {
		if !r.met[line] {
			t.Errorf("no document has the command %q, which something comes before", line)
		}
	}
	for line := range shows {
		if !r.met[line] {
			t.Errorf("no document has the command %q, whose output is known", line)
		}
	}
}

// reader is somebody who follows the documents, each in a folder of its own.
type reader struct {
	*world

	root   string // of the repository
	dir    string
	images *registryOf
	env    []string
	met    map[string]bool // lines of meanwhile and shows
}

func (r *reader) in(t *testing.T) *reader {
	c := *r
	if r.met == nil {
		r.met = map[string]bool{}
	}
	c.world, c.dir, c.met = r.world.in(t), t.TempDir(), r.met
	return &c
}

// meanwhile is what a reader does, or waits for, before a line of a document, by the line's beginning.
var meanwhile = map[string]func(r *reader){
	// Registries are asked at once, and a cluster is held after some seconds.
	"packages search":  func(r *reader) { r.connected("east"); r.ready("harbour") },
	"get installplans": func(r *reader) { r.until(`RequiresApproval`, "get", "installplans") },
	"get operators":    func(r *reader) { r.runs("tidegauge.v1.1.0", "buoy.v0.9.1") },
	// The publisher releases a version, which tidegauge takes.
	"rollback": func(r *reader) {
		r.publish("catalog-next")
		r.types("catalog", "refresh", "harbour")
		r.runs("tidegauge.v1.2.1")
	},
	"get leftovers": func(r *reader) {
		r.until(`customresourcedefinitions|CustomResourceDefinition`, "get", "leftovers", "-o", "yaml")
	},
	// An API server is registered once.
	"cluster add east-1":   func(r *reader) { r.types("cluster", "remove", "east") },
	"catalog add examples": func(r *reader) { r.connected("east-1") },
}

// shows is what commands write about a cluster, by their beginning.
var shows = map[string]string{
	"packages search":                `^$`, // the examples have no backup
	"get installplans":               `east +harbour-ops +install-\w{5} +tidegauge.v1.1.0,buoy.v0.9.1 +Manual +RequiresApproval`,
	"describe installplan":           `(?s)Bundles:.*buoy.v0.9.1.*Objects:.*Deployment.*In its cluster: +no obstacles`,
	"approve":                        `approved \(\w{12}, \d+ steps\)`,
	"get operators":                  `(?s)buoy.v0.9.1 +buoy +0.9.1 +Succeeded.*tidegauge.v1.1.0 +tidegauge +1.1.0 +Succeeded`,
	"describe operator":              `(?s)Phase: +Succeeded.*Components:.*Deployment +harbour-ops +tidegauge-operator +Current`,
	"plan check":                     `No obstacles`,
	"rollback":                       `goes back from tidegauge.v1.2.1 to tidegauge.v1.1.0`,
	"uninstall":                      `(?s)Removing buoy.v0.9.1.*Not removed:.*buoys.sea.example.com.*is being removed`,
	"get leftovers":                  `east +harbour-ops +buoy.v0.9.1 +buoy`,
	"cluster set east --label":       `labels stage=production`,
	"cluster set east --mirror":      `mirror all, drift report`,
	"plan -f":                        `(?s)→ buoy.v0.9.1.*1 plan.*chandler plan apply`,
	"explain subscription/tidegauge": `(?s)resolves to tidegauge.v1.1.0.*the decision is the same`,
	"why tidegauge":                  `(?s)tidegauge.v1.2.1.*Why it is there:.*Newer versions|No visible catalog has a newer version`,
	"apply -f policy.yaml":           `approvalpolicy/production created`,
}

// endless commands are ended by their reader once they have written a line. Some get flags: a port may be another's
// here.
var endless = map[string][]string{"events --follow": nil, "catalog serve": {"--listen", "127.0.0.1:0"}}

// planName is the plan that documents speak of.
const planName = "install-7xk2p"

// stands is what a word of a document stands for here.
func (r *reader) stands(word string) string {
	r.t.Helper()
	switch word {
	case planName:
		return r.until(`install-\w{5}`, "get", "installplans", "--cluster", "east", "--phase", "RequiresApproval",
			"--no-headers")
	case "sha256:3f0c…":
		return r.until("sha256:[0-9a-f]{64}", "get", "catalog", "harbour", "-o", "yaml")
	case "/catalogs/catalog": // in the container of the indexer
		return example(r.t)
	case "FILE": // as clouds have it: the token comes from a program
		return "cloud.kubeconfig"
	}
	return word
}

// follow runs a line as it stands.
func (r *reader) follow(c doccommand.Command) {
	r.t.Helper()
	line := c.String()
	for beginning, do := range meanwhile {
		if strings.HasPrefix(line, beginning) && !r.met[beginning] {
			r.met[beginning] = true
			do(r)
		}
	}
	words := make([]string, len(c.Words))
	for i, word := range c.Words {
		words[i] = r.stands(word)
	}
	for beginning, flags := range endless {
		if strings.HasPrefix(line, beginning) {
			r.watch(c.Place, slices.Concat(words, flags))
			return
		}
	}
	status, out, errOut := r.chandler(words...)
	if status != 0 {
		r.t.Errorf("%s: chandler %s: status %d\n%s%s", c.Place, line, status, out, errOut)
		return
	}
	for beginning, want := range shows {
		if !strings.HasPrefix(line, beginning) {
			continue
		}
		r.met[beginning] = true
		if !regexp.MustCompile(want).MatchString(out) {
			r.t.Errorf("%s: chandler %s does not show %s:\n%s%s", c.Place, line, want, out, errOut)
		}
	}
	if c.Into == "" {
		return
	}
	flag := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if c.Appends {
		flag = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	}
	f, err := os.OpenFile(filepath.Join(r.dir, c.Into), flag, 0o600)
	r.must(err)
	_, err = f.WriteString(out)
	r.must(errors.Join(err, f.Close()))
}

func (r *reader) command(ctx context.Context, words ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "chandler"), words...)
	cmd.Dir = r.dir
	cmd.Env = append([]string{"HOME=" + r.dir, "PATH=" + os.Getenv("PATH"), "DOCKER_CONFIG=" + r.dir}, r.env...)
	return cmd
}

// chandler runs one command line and returns what it wrote.
func (r *reader) chandler(words ...string) (status int, out, errOut string) {
	r.t.Helper()
	var o, e bytes.Buffer
	cmd := r.command(r.ctx, words...)
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

// types runs a command that prepares or ends a document's world.
func (r *reader) types(words ...string) {
	r.t.Helper()
	if status, out, errOut := r.chandler(words...); status != 0 {
		r.t.Fatalf("chandler %s: status %d\n%s%s", strings.Join(words, " "), status, out, errOut)
	}
}

// until repeats a command until it writes something that fits, which it returns.
func (r *reader) until(want string, words ...string) (found string) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("chandler %s shows %q", strings.Join(words, " "), want), func() (string, bool) {
		_, out, errOut := r.chandler(words...)
		found = regexp.MustCompile(want).FindString(out)
		return out + errOut, found != ""
	})
	return found
}

// watch starts a command that does not end, has something happen until it writes a line, and ends it as Ctrl-C does.
func (r *reader) watch(place string, words []string) {
	r.t.Helper()
	cmd := r.command(r.ctx, words...)
	read, write := io.Pipe()
	cmd.Stdout, cmd.Stderr = write, write
	r.must(cmd.Start())
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(read).ReadString('\n')
		line <- text
		_, _ = io.Copy(io.Discard, read)
	}()
	r.eventually("chandler "+strings.Join(words, " ")+" writes a line", func() (string, bool) {
		select {
		case text := <-line:
			r.t.Logf("%s: %s", place, text)
			return text, text != ""
		default:
			r.types("catalog", "refresh", "harbour")
			return "", false
		}
	})
	r.must(cmd.Process.Signal(syscall.SIGINT))
	if err := cmd.Wait(); err != nil {
		r.t.Errorf("%s: chandler %s, ended with Ctrl-C: %v", place, strings.Join(words, " "), err)
	}
	r.must(write.Close())
}

func (r *reader) connected(cluster string) {
	r.t.Helper()
	r.until(`Connected`, "get", "cluster", cluster)
}

func (r *reader) ready(catalog string) {
	r.t.Helper()
	r.until(`Ready`, "get", "catalog", catalog)
}

// runs waits until operators of harbour-ops are healthy.
func (r *reader) runs(csvs ...string) {
	r.t.Helper()
	for _, csv := range csvs {
		r.until(regexp.QuoteMeta(csv)+`.*Succeeded`, "get", "operators", "--cluster", "east", "-n", "harbour-ops")
	}
}

// publish puts examples into the registry as the catalog that the README adds.
func (r *reader) publish(overlay string) {
	r.t.Helper()
	dir := filepath.Join(r.t.TempDir(), "catalog")
	r.must(os.CopyFS(dir, os.DirFS(example(r.t))))
	if overlay != "" {
		r.must(overlaid(dir, os.DirFS(filepath.Join(r.root, "examples", overlay))))
	}
	r.images.name = "registry.example.com"
	r.images.catalogImageAs("harbour/catalog", dir, "v1")
}

// cloudKubeconfig asks a program for the token of an administrator.
func (r *reader) cloudKubeconfig() string {
	r.t.Helper()
	config, err := clientcmd.Load(r.cluster.Kubeconfig())
	r.must(err)
	for _, user := range config.AuthInfos {
		*user = clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: "sh", InteractiveMode: "Never",
			Args: []string{"-c", `echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",` +
				`"status":{"token":"` + user.Token + `"}}'`},
		}}
	}
	raw, err := clientcmd.Write(*config)
	r.must(err)
	return string(raw)
}

// overlaid writes files over those that are there.
func overlaid(dir string, from fs.FS) error {
	return fs.WalkDir(from, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, path)
		if d.IsDir() {
			return os.MkdirAll(to, 0o750)
		}
		text, err := fs.ReadFile(from, path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o600)
	})
}

// prepare makes what a document takes for granted: files in the folder of its reader, images, and catalogs that it
// names.
func (r *reader) prepare(document string) {
	r.t.Helper()
	read := func(file string) string {
		raw, err := os.ReadFile(filepath.Join(r.root, filepath.FromSlash(file)))
		r.must(err)
		return string(raw)
	}
	policy, _, _ := strings.Cut(strings.SplitN(read("docs/policies.md"), "```yaml\n", 2)[1], "```")
	access := read("docs/access.md")
	binding, _, _ := strings.Cut(strings.SplitN(access, "```yaml\n", 2)[1], "```")
	_, portal, _ := strings.Cut(access, "chandler apply -f portal.yaml\n") // shown behind the command
	portal, _, _ = strings.Cut(strings.SplitN(portal, "```yaml\n", 2)[1], "```")
	script := read("cmd/chandler/conformance/testdata/script/resolve.txtar")
	section := func(name string) string {
		text, _, _ := strings.Cut(strings.SplitN(script, "-- "+name+" --\n", 2)[1], "\n-- ")
		return text + "\n"
	}
	auth := base64.StdEncoding.EncodeToString([]byte(registryUser + ":" + registryPassword))
	r.copies(document)
	r.must(os.MkdirAll(filepath.Join(r.dir, "catalogs"), 0o750))
	for name, content := range map[string]string{
		"config.json": fmt.Sprintf(
			`{"auths": {"registry.example.com": {"auth": %[1]q}, "registry.test": {"auth": %[1]q}}}`, auth),
		"east.kubeconfig":    string(r.cluster.Kubeconfig()),
		"cloud.kubeconfig":   r.cloudKubeconfig(),
		"subscription.yaml":  strings.Replace(read("examples/demo/east.yaml"), "Automatic", "Manual", 1),
		"lighthouse.yaml":    read("examples/fleet/lighthouse.yaml"),
		"policy.yaml":        policy,
		"binding.yaml":       binding,
		"portal.yaml":        portal,
		"namespace.json":     section("harbour.json"),
		"upgrade.json":       section("harbour.json"),
		"catalogs/sea.jsonl": section("catalogs/sea.jsonl"),
		"harbour.yaml": "name: harbour\nrepo: registry.test/ops/harbour-catalog\ntag: v1\nreferences:\n- " +
			"{name: tidegauge, image: \"registry.test/ops/catalog:v1\"}\n",
		"README.md": "Reads the tide.\n",
		"logo.svg":  `<svg xmlns="http://www.w3.org/2000/svg"/>`,
	} {
		r.must(os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o600))
	}
	switch document {
	case "README.md":
		r.publish("")
		r.types("catalog", "secret", "set", "harbour-pull", "--docker-config", "config.json")
	case "docs/authoring.md":
		r.images.name = "registry.test"
		r.images.catalogImageAs("ops/catalog", example(r.t), "v1")
		for _, version := range []string{"1.0.0", "1.1.0"} {
			r.images.bundleImageAs("ops/tidegauge-bundle", filepath.Join(example(r.t), "tidegauge", version),
				"tidegauge", "v"+version)
		}
	}
}

// copies puts folders of the repository where a document looks for them.
func (r *reader) copies(document string) {
	r.t.Helper()
	dirs := map[string]string{
		"cases":           filepath.Join(r.root, "services", "resolver", "conformance", "testdata", "semantic"),
		"tidegauge/1.1.0": filepath.Join(example(r.t), "tidegauge", "1.1.0"),
		"v1":              example(r.t),
		"catalog":         example(r.t),
	}
	if document == "docs/authoring.md" { // which makes it
		delete(dirs, "catalog")
		r.must(os.MkdirAll(filepath.Join(r.dir, "catalog", "tidegauge"), 0o750))
	}
	for to, from := range dirs {
		r.must(os.CopyFS(filepath.Join(r.dir, filepath.FromSlash(to)), os.DirFS(from)))
	}
	if out, err := exec.CommandContext(r.ctx, "tar", "-czf", filepath.Join(r.dir, "v1.tar.gz"), "-C",
		filepath.Join(r.dir, "v1"), ".").CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
}
