// Package pages are the addresses that people give each other: /go/KIND/…, which a message or a ticket may hold. With a
// console they lead there. Without one they are plain pages, without script and style, that say how the thing does.
//
// A page reads from the API, in this process and by the headers of the request: who may see it, what is counted and
// what stands in the access log is as if the same person had asked the API. What needs no read is answered behind the
// API's router, so that it stands in the access log, has an id, and is limited for each address.
package pages

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Prefix is where pages lie.
const Prefix = "/go/"

// policy of pages: nothing is loaded, framed or sent from them.
const policy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// kind is one kind of things that have a page.
type kind struct {
	path string // in the API, with {} for each element of the address
	row  []row  // what the page says
}

// row is one line of a page.
type row struct {
	label string
	field string // of the answer of the API, with dots
	leads string // kind of the page that the value, the last element of its address, leads to
}

func kinds() map[string]kind {
	inNamespace := []row{{"Cluster", "cluster", "cluster"}, {"Namespace", "namespace", ""}}
	return map[string]kind{
		"cluster": {"/clusters/{}", []row{
			{"State", "state", ""},
			{"Reason", "reason", ""},
			{"Message", "message", ""},
			{"Kubernetes", "kubernetesVersion", ""},
		}},
		"catalog": {"/catalogs/{}", []row{
			{"State", "state", ""},
			{"Reason", "reason", ""},
			{"Packages", "packages", ""},
			{"Revision", "revision", ""},
		}},
		"subscription": {"/clusters/{}/namespaces/{}/subscriptions/{}", slices.Concat(inNamespace, []row{
			{"Package", "spec.package", ""},
			{"Catalog", "spec.catalog", ""},
			{"Channel", "spec.channel", ""},
			{"State", "status.state", ""},
			{"Installed", "status.installedCSV", ""},
			{"Phase", "status.phase", ""},
			{"Newest known", "status.currentCSV", ""},
			{"Install plan", "status.installPlan.id", "installplan"},
		})},
		"operator": {"/clusters/{}/namespaces/{}/operators/{}", slices.Concat(inNamespace, []row{
			{"Package", "package", ""},
			{"Version", "version", ""},
			{"Phase", "phase", ""},
			{"Reason", "reason", ""},
			{"Message", "message", ""},
			{"Install plan", "plan", "installplan"},
		})},
		"operatorgroup": {"/clusters/{}/namespaces/{}/operatorgroups/{}", slices.Concat(inNamespace, []row{
			{"Upgrade strategy", "upgradeStrategy", ""},
		})},
		"installplan": {"/installplans/{}", slices.Concat(inNamespace, []row{
			{"Name", "name", ""},
			{"Phase", "phase", ""},
			{"Approval", "approval", ""},
			{"Waits for", "waitsFor", ""},
			{"Steps", "steps", ""},
			{"Digest", "digest", ""},
			{"Message", "message", ""},
		})},
	}
}

//go:embed page.html
var text string

// API is what pages read from.
type API interface {
	http.Handler
	// Open has a handler answer below a path, without a token and behind what all answers are behind.
	Open(path string, h http.Handler)
}

// Handler answers what lies below Prefix, and hands the rest to the API.
type Handler struct {
	api     API
	prefix  string // of the API
	console string // "" where there is none
	kinds   map[string]kind
	page    *template.Template
}

// New returns a handler. prefix is that of the API; console is its address, or "".
func New(api API, prefix, console string) (*Handler, error) {
	if err := CheckConsole(console); err != nil {
		return nil, err
	}
	page, err := template.New("page").Parse(text)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "read the page")
	}
	h := &Handler{api: api, prefix: prefix, console: strings.TrimRight(console, "/"), kinds: kinds(), page: page}
	api.Open(Prefix, http.HandlerFunc(h.plain))
	return h, nil
}

// CheckConsole refuses what is no address to which a path can be added.
func CheckConsole(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.ForceQuery || u.Fragment != "" {
		return errs.New(errs.Invalid,
			"setting console-url is %q: want the address of a console, such as https://console.example", address).
			At("console-url", "")
	}
	return nil
}

// address is what a page is asked for.
type address struct {
	path     string // below Prefix, escaped
	name     string // of the kind
	kind     kind
	elements []string
	good     bool // a page has this address
}

func (h *Handler) address(r *http.Request) (a address, ours bool) {
	if a.path, ours = strings.CutPrefix(r.URL.EscapedPath(), Prefix); !ours {
		return a, false
	}
	var rest string
	a.name, rest, _ = strings.Cut(a.path, "/")
	a.kind, a.good = h.kinds[a.name]
	a.elements = strings.Split(rest, "/")
	a.good = a.good && len(a.elements) == strings.Count(a.kind.path, "{}") &&
		!slices.ContainsFunc(a.elements, noElement)
	return a, true
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, ours := h.address(r)
	reads := (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Authorization") != ""
	if ours && reads && a.good && h.console == "" {
		h.read(w, r, a.name, a.kind, a.elements)
		return
	}
	h.api.ServeHTTP(w, r) // it hands what is ours to plain
}

// plain answers what needs no read.
func (h *Handler) plain(w http.ResponseWriter, r *http.Request) {
	a, _ := h.address(r)
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		h.say(w, http.StatusMethodNotAllowed, content{Title: "A page can only be read"})
	case !a.good:
		h.say(w, http.StatusNotFound, content{
			Title: "There is no such page", Text: "Pages have addresses such as /go/cluster/NAME, /go/catalog/NAME, " +
				"/go/installplan/ID, and /go/subscription/CLUSTER/NAMESPACE/NAME; so do operator and operatorgroup.",
		})
	case h.console != "":
		// Whether it is there, and who may see it, is for the console to find out. The host is that of the setting; the
		// path has no element that leads out of it.
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, h.console+"/"+a.path, http.StatusFound)
	default:
		w.Header().Set("WWW-Authenticate", "Bearer")
		h.say(w, http.StatusUnauthorized, content{
			Title: "Sign in to read this page",
			Text: "The request has no bearer token. A proxy in front of Chandler that signs people in sends theirs; " +
				"on a command line, chandler describe says the same.",
		})
	}
}

// noElement are texts that no name is, and that would lead elsewhere on a console.
func noElement(escaped string) bool {
	plain, err := url.PathUnescape(escaped)
	return err != nil || plain == "" || plain == "." || plain == ".." || strings.ContainsAny(plain, `/\`)
}

// read asks the API and says what it answers.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, name string, k kind, elements []string) {
	path := k.path
	for _, e := range elements {
		path = strings.Replace(path, "{}", e, 1)
	}
	target, err := url.Parse(h.prefix + path)
	if err != nil {
		h.say(w, http.StatusNotFound, content{Title: "There is no such page"})
		return
	}
	asked := r.Clone(r.Context())
	asked.Method, asked.URL, asked.RequestURI = http.MethodGet, target, target.RequestURI()
	asked.Body, asked.ContentLength, asked.TransferEncoding = http.NoBody, 0, nil
	asked.Header.Set("Accept", "application/json")
	for _, header := range []string{"Accept-Encoding", "If-None-Match", "If-Modified-Since", "Range"} {
		asked.Header.Del(header)
	}
	answer := &recorder{header: http.Header{}, status: http.StatusOK}
	h.api.ServeHTTP(answer, asked)
	for _, header := range []string{
		"WWW-Authenticate", "Retry-After", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset",
		"RateLimit-Policy",
	} {
		if v := answer.header.Get(header); v != "" {
			w.Header().Set(header, v)
		}
	}
	h.say(w, answer.status, k.content(name, elements, answer))
}

// content is what a page says.
type content struct {
	Title, Text string
	Rows        []line
	At          string // when it was so
}

type line struct{ Label, Text, Leads string }

func (k kind) content(name string, elements []string, a *recorder) content {
	d := json.NewDecoder(&a.body)
	d.UseNumber() // as it is written
	var fields map[string]any
	if err := d.Decode(&fields); err != nil {
		return content{Title: http.StatusText(a.status)}
	}
	if media, _, _ := mime.ParseMediaType(a.header.Get("Content-Type")); a.status != http.StatusOK ||
		media != "application/json" {
		return content{Title: at(fields, "title"), Text: at(fields, "detail")}
	}
	last, err := url.PathUnescape(elements[len(elements)-1])
	if err != nil {
		last = ""
	}
	c := content{Title: name + " " + last, At: time.Now().UTC().Format(time.RFC3339)}
	for _, r := range k.row {
		value := at(fields, r.field)
		if value == "" {
			continue
		}
		l := line{Label: r.label, Text: value}
		if r.leads != "" {
			l.Leads = Prefix + r.leads + "/" + url.PathEscape(value)
		}
		c.Rows = append(c.Rows, l)
	}
	return c
}

// at is a text or a number in a document, "" where there is none.
func at(fields map[string]any, path string) string {
	first, rest, deeper := strings.Cut(path, ".")
	if deeper {
		inner, _ := fields[first].(map[string]any)
		return at(inner, rest)
	}
	switch v := fields[first].(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	default:
		return ""
	}
}

func (h *Handler) say(w http.ResponseWriter, status int, c content) {
	var b bytes.Buffer
	if err := h.page.Execute(&b, c); err != nil {
		http.Error(w, "the page cannot be written", http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	header.Set("Vary", "Authorization")
	w.WriteHeader(status)
	// The reader may have gone.
	_, _ = w.Write(b.Bytes())
}

// recorder keeps an answer of the API.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
