package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// hostileText retitles and repaints a terminal, turns the direction of what follows, and begins lines and columns of
// its own.
const hostileText = "x\x1b]0;owned\a\x1b[2J\u202etxt\u009b31m\r\nforged\tline\u2028end"

// hostile fills a value of the API with hostile text wherever it has text.
func hostile(v reflect.Value, depth int) {
	const deepest = 6
	if depth > deepest || !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(hostileText)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		hostile(v.Elem(), depth+1)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1, 0).UTC()))
			return
		}
		for _, f := range v.Fields() {
			hostile(f, depth+1)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"x":"\u202e"}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		hostile(v.Index(0), depth+1)
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			return
		}
		value := reflect.New(v.Type().Elem()).Elem()
		hostile(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(hostileText).Convert(v.Type().Key()), value)
	case reflect.Bool:
		v.SetBool(true)
	default:
	}
}

func hostileOf[T any]() any {
	var v T
	hostile(reflect.ValueOf(&v).Elem(), 0)
	return v
}

// hostileReview answers what is asked of the content of a plan; nil where the answer is text, and written.
func hostileReview(w http.ResponseWriter, r *http.Request, about string) any {
	switch {
	case about == "rights":
		return hostileOf[model.PlanRights]()
	case about == "objects":
		o := hostileOf[model.PlanObject]()
		return map[string]any{"items": []any{o}}
	case r.Header.Get("Accept") == "text/plain":
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte("--- a\n+++ b\n+" + strings.ReplaceAll(hostileText, "\n", " ") + "\n"))
		return nil
	}
	d := hostileOf[model.PlanDiff]()
	if p, ok := d.(model.PlanDiff); ok {
		p.Next = ""
		return p
	}
	return d
}

// hostileServer answers everything with hostile text, as a catalog, a cluster or another user may have brought it in.
func hostileServer(t *testing.T) *httptest.Server {
	t.Helper()
	lists := map[string]any{
		"catalogs": hostileOf[model.Catalog](), "clusters": hostileOf[model.Cluster](),
		"subscriptions": hostileOf[model.Subscription](), "installplans": hostileOf[model.InstallPlan](),
		"operators": hostileOf[model.Operator](), "operatorgroups": hostileOf[model.OperatorGroup](),
		"approvalpolicies": hostileOf[model.ApprovalPolicy](), "packages": hostileOf[model.FoundPackage](),
		"events": hostileOf[model.Event](), "revisions": hostileOf[model.Revision](),
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/")
		last, before := parts[len(parts)-1], ""
		if len(parts) > 1 {
			before = parts[len(parts)-2]
		}
		var answer any
		switch {
		case (len(parts) == 1 || last == "revisions") && lists[last] != nil:
			answer = map[string]any{"items": []any{lists[last]}}
		case last == "rights" || last == "diff" || last == "objects":
			answer = hostileReview(w, r, last)
			if answer == nil {
				return
			}
		case last == "check":
			answer = hostileOf[model.PlanCheck]()
		case last == "explanation":
			answer = hostileOf[model.Decision]()
		case last == "why":
			answer = hostileOf[model.OperatorReasoning]()
		case before == "named":
			answer = model.Named{Kind: "operator", Name: "tide.v1"}
		case lists[before] != nil:
			answer = lists[before]
		default:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusUnprocessableEntity)
			answer = map[string]any{"status": 422, "title": hostileText, "detail": hostileText}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// TestHostileTextSteersNoTerminal: whatever others call their things, tables, descriptions, sentences and errors hold
// no character that a terminal obeys, also in a pipe, where a pager or the log of a pipeline shows them later; a table
// has one line for one thing. Documents for programs are exact.
func TestHostileTextSteersNoTerminal(t *testing.T) {
	t.Parallel()
	s := hostileServer(t)
	run := func(args string) (out, wrong string, status int) {
		var o, e strings.Builder
		status = Main(t.Context(), command.Streams{
			In: strings.NewReader(""), Out: &o, Err: &e,
			Env: func(string) (string, bool) { return "", false }, Now: time.Now,
		}, strings.Fields("--url "+s.URL+" --token x "+args))
		return o.String(), e.String(), status
	}
	obeyed := func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028'
	}
	for _, kind := range []string{
		"catalogs", "clusters", "subscriptions", "installplans", "operators", "operatorgroups", "approvalpolicies",
		"packages",
	} {
		for _, format := range []string{"", " -o wide", " -o name"} {
			out, wrong, status := run("get " + kind + format)
			lines := strings.Count(out, "\n")
			if want := map[bool]int{true: 1, false: 2}[format == " -o name"]; status != 0 || lines != want {
				t.Errorf("get %s%s: status %d, %d lines (%s):\n%q", kind, format, status, lines, wrong, out)
			}
			if i := strings.IndexFunc(out+wrong, obeyed); i >= 0 {
				t.Errorf("get %s%s writes %q", kind, format, (out + wrong)[i:])
			}
		}
		out, wrong, status := run("get " + kind + " -o json")
		var list struct{ Items []any }
		if err := json.Unmarshal([]byte(out), &list); err != nil || status != 0 || len(list.Items) != 1 ||
			!holds(list.Items[0], hostileText) {
			t.Errorf("get %s -o json is not exact: status %d, %v, %s", kind, status, err, wrong)
		}
	}
	described := 0
	for _, args := range []string{
		"describe cluster east-1", "describe catalog tides", "describe subscription east-1/ports/tide",
		"describe operator east-1/ports/tide.v1", "describe operatorgroup east-1/ports/og", "describe policy p",
		"describe installplan 7b1f5d5e-0000-4000-8000-000000000000", "plan check 7b1f5d5e-0000-4000-8000-000000000000",
		"plan show 7b1f5d5e-0000-4000-8000-000000000000", "plan rights 7b1f5d5e-0000-4000-8000-000000000000",
		"plan diff 7b1f5d5e-0000-4000-8000-000000000000", "plan objects 7b1f5d5e-0000-4000-8000-000000000000",
		"plan objects 7b1f5d5e-0000-4000-8000-000000000000 --manifests",
		"explain subscription/tide --cluster east-1 -n ports", "why tide --cluster east-1 -n ports",
		"describe package tide", "cluster remove east-1",
	} {
		out, wrong, status := run(args)
		if status == 0 {
			described++
		}
		if i := strings.IndexFunc(out+wrong, obeyed); i >= 0 {
			t.Errorf("%s writes %q", args, (out + wrong)[i:])
		}
		if strings.Contains(out+wrong, "\nforged\tline") {
			t.Errorf("%s shows a line that nobody wrote:\n%s%s", args, out, wrong)
		}
	}
	if described < 6 {
		t.Errorf("%d commands described something: the server answers something else than they ask", described)
	}
}

// holds reports whether a document has a text somewhere.
func holds(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return v == text
	case []any:
		for _, e := range v {
			if holds(e, text) {
				return true
			}
		}
	case map[string]any:
		for k, e := range v {
			if k == text || holds(e, text) {
				return true
			}
		}
	}
	return false
}
