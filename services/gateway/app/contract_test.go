package app_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"

	"github.com/chandler-fleet/chandler/services/gateway/app"
	"github.com/chandler-fleet/chandler/services/gateway/internal/api"
	"github.com/chandler-fleet/chandler/services/gateway/internal/api/document"
	"github.com/chandler-fleet/chandler/services/gateway/seconds"
)

const (
	// contractRequests is how many requests are made; CHANDLER_CONTRACT_REQUESTS is another number.
	contractRequests = 2500
	// contractSeed makes the same requests each time; CHANDLER_CONTRACT_SEED is another one.
	contractSeed = 13
	// contractDepth bounds what is made up of a body.
	contractDepth = 6
)

// contractNames are names in requests: few, so that requests meet what others made.
var contractNames = []string{"spoke", "a", "b", "ops"}

// broken are texts that nobody should send.
var broken = []string{
	"", " ", "A_b", "a..b", "-a", "\u0000", "a\u0000b", "\u202e", "é", "😀", "\ufeff", "'; drop table x --", "%00",
	"../..", "null", "true", "-1", "1e400", "9223372036854775808", "1-99999999999999999999", "0001-01-01T00:00:00Z",
	"9999-12-31T23:59:59.999999999Z", "00000000-0000-0000-0000-000000000000", "*", "c1:" + strings.Repeat("0", 64),
	strings.Repeat("a", 300), strings.Repeat("a", 5000), "a=b", "a in (b,c)", "!a", "{}", "[]", "\\", "\"", "\x7f",
	"\ud7ff",
}

// contract makes requests up from the document.
type contract struct {
	*rand.Rand

	schemas huma.Registry
}

func (c contract) pick(list []string) string { return list[c.IntN(len(list))] }

func (c contract) chance(percent int) bool { return c.IntN(100) < percent }

// text is a text for a schema, now and then one that breaks it.
func (c contract) text(s *huma.Schema) string {
	switch {
	case c.chance(4):
		return c.pick(broken)
	case len(s.Enum) > 0:
		return fmt.Sprint(s.Enum[c.IntN(len(s.Enum))])
	case s.Format == "uuid":
		return "00000000-0000-4000-8000-00000000000" + strconv.Itoa(c.IntN(10))
	case s.Format == "date-time":
		return "2026-01-02T03:04:05Z"
	case strings.HasPrefix(s.Pattern, "^c1:"):
		return "c1:" + strings.Repeat("a", 64)
	default:
		return c.pick(contractNames)
	}
}

// number is a number for a schema, now and then one that breaks it.
func (c contract) number(s *huma.Schema) int64 {
	if c.chance(5) {
		return []int64{-1, 0, 1 << 31, 1 << 53, -1 << 63, 1<<63 - 1}[c.IntN(6)]
	}
	low := int64(1)
	if s.Minimum != nil {
		low = int64(*s.Minimum)
	}
	return low + c.Int64N(20)
}

// value is a value for a schema, now and then one that breaks it.
func (c contract) value(s *huma.Schema, depth int) any {
	if s.Ref != "" {
		s = c.schemas.SchemaFromRef(s.Ref)
	}
	if depth > contractDepth {
		return nil
	}
	if c.chance(2) {
		return []any{nil, 7, "x", true, []any{}, map[string]any{}, -1.5, c.pick(broken)}[c.IntN(8)]
	}
	switch s.Type {
	case huma.TypeBoolean:
		return c.chance(50)
	case huma.TypeInteger, huma.TypeNumber:
		return c.number(s)
	case huma.TypeArray:
		list := make([]any, c.IntN(4))
		for i := range list {
			list[i] = c.value(s.Items, depth+1)
		}
		return list
	case huma.TypeObject:
		return c.object(s, depth)
	default:
		return c.text(s)
	}
}

func (c contract) object(s *huma.Schema, depth int) map[string]any {
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if c.chance(40) || slices.Contains(s.Required, name) && !c.chance(3) {
			out[name] = c.value(s.Properties[name], depth+1)
		}
	}
	if more, ok := s.AdditionalProperties.(*huma.Schema); ok {
		for range c.IntN(3) {
			out[c.pick(append(contractNames, c.pick(broken)))] = c.value(more, depth+1)
		}
	}
	if c.chance(2) {
		out[c.pick(broken)] = c.pick(broken)
	}
	if _, ok := out["kubeconfig"]; ok && c.chance(80) {
		out["kubeconfig"] = kubeconfig
	}
	return out
}

// parameter is the value of a parameter.
func (c contract) parameter(p *huma.Param) string {
	s := p.Schema
	if s.Items != nil {
		s = s.Items
	}
	switch {
	case p.Name == "cursor" && c.chance(70):
		raw, _ := json.Marshal([]string{c.pick(broken), c.pick(broken), c.pick(contractNames)}[c.IntN(3):]) //nolint:errchkjson // texts
		return base64.RawURLEncoding.EncodeToString(raw)
	case p.Name == "minPosition", p.Name == "after":
		return c.pick([]string{"1-1", "1-2", "2-1", "x@1", "", c.pick(broken)})
	case p.Name == "fields":
		return c.pick([]string{
			"name", "cluster,name", "items.name", "labels.site", "spec", "name.none", c.pick(broken),
		})
	case s.Type == huma.TypeBoolean:
		return c.pick([]string{"true", "false", "yes"})
	case s.Type == huma.TypeInteger:
		return strconv.FormatInt(c.number(s), 10)
	default:
		return c.text(s)
	}
}

// request makes a request of an operation.
func (c contract) request(path string, op *huma.Operation) (target string, header http.Header, body []byte) {
	query := url.Values{}
	header = http.Header{"Authorization": {"Bearer " + token}}
	for _, p := range op.Parameters {
		if p.Name == "watch" { // has no end; its tests are beside it
			continue
		}
		switch p.In {
		case "path":
			given := c.parameter(p)
			if given == "" || strings.Trim(given, ".") == "" || strings.Contains(given, "/") {
				given = "a" // another path
			}
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(given))
		case "query":
			if p.Required || c.chance(25) {
				query.Set(p.Name, c.parameter(p))
			}
		case "header":
			if given := c.parameter(p); c.chance(25) && !strings.ContainsFunc(given, func(r rune) bool {
				return r < ' ' || r == '\x7f' // net/http sends no such header
			}) {
				header.Set(p.Name, given)
			}
		}
	}
	if op.RequestBody != nil {
		for _, contentType := range slices.Sorted(maps.Keys(op.RequestBody.Content)) {
			header.Set("Content-Type", contentType)
			s := op.RequestBody.Content[contentType].Schema
			if s == nil {
				s = &huma.Schema{Type: huma.TypeObject}
			}
			body, _ = json.Marshal(c.value(s, 0)) //nolint:errchkjson // values of JSON
		}
		if c.chance(3) && len(body) > 0 {
			body[c.IntN(len(body))] = byte(c.IntN(256))
		}
	}
	target = "/api/v1" + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	return target, header, body
}

// awayInTests are parts of paths whose operations ask services that do not run here: these are unavailable.
var awayInTests = []string{
	"/explanation", "/logs", "/check", "/why", "/previews", "/shadow", "/operators/{name}", "/replicas", "dryRun=true",
	"/agent-config", "/preview",
}

// TestContract: whatever is asked of any route, the answer is one that the document has, in status, media type and
// fields, and never a fault. The same seed makes the same requests.
func TestContract(t *testing.T) {
	t.Parallel()
	b := setupWith(t, func(c *app.Config) { c.Limits.RequestRate, c.Limits.RefusedRate = 1_000_000, 1_000_000 })
	b.cluster("spoke")
	a := api.New(api.Deps{})
	raw, err := a.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := libopenapi.NewDocument(raw)
	if err != nil {
		t.Fatal(err)
	}
	v, faults := validator.NewValidator(parsed)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	number, seed := setting(t, "CHANDLER_CONTRACT_REQUESTS", contractRequests),
		setting(t, "CHANDLER_CONTRACT_SEED", contractSeed)
	c := contract{
		rand.New(rand.NewPCG(uint64(seed), 1)),
		a.Document().Components.Schemas,
	}
	type route struct {
		method, path string
		op           *huma.Operation
	}
	var routes []route
	for _, path := range slices.Sorted(maps.Keys(a.Document().Paths)) {
		all := document.Operations(a.Document().Paths[path])
		for _, method := range slices.Sorted(maps.Keys(all)) {
			if path != "/events/stream" { // has no end; its tests are beside it
				routes = append(routes, route{method, path, all[method]})
			}
		}
	}
	good := map[string]int{}
	for i := range number {
		r := routes[i%len(routes)]
		target, header, body := c.request(r.path, r.op)
		req, err := http.NewRequestWithContext(t.Context(), r.method, b.url+target, bytes.NewReader(body))
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		req.Header = header
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("request %d: %s %s: %v", i, r.method, target, err)
		}
		answered, err := io.ReadAll(res.Body)
		if err != nil || res.Body.Close() != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		said := fmt.Sprintf("request %d of seed %d: %s %s %.300s: %d %.600s", i, seed, r.method, target, body,
			res.StatusCode, answered)
		if res.StatusCode < http.StatusMultipleChoices {
			good[r.method+" "+r.path]++
		}
		away := res.StatusCode > http.StatusInternalServerError && slices.ContainsFunc(awayInTests,
			func(part string) bool { return strings.Contains(r.path+target, part) })
		if res.StatusCode >= http.StatusInternalServerError && !away || bytes.Contains(answered, []byte("SQLSTATE")) {
			t.Error(said)
			continue
		}
		checkAnswer(t, v, r.op, a.Document(), req, res, answered, said)
	}
	t.Logf("%d of %d operations were carried out at least once", len(good), len(routes))
	// Others need what nobody can make up, such as rollouts and agents: those are tested by themselves.
	if len(good) < len(routes)/4 && number >= contractRequests {
		t.Errorf("only %d of %d operations were carried out: what is made up is too bad", len(good), len(routes))
	}
}

// checkAnswer holds an answer against the document.
func checkAnswer(t *testing.T, v validator.Validator, op *huma.Operation, doc *huma.OpenAPI, req *http.Request,
	res *http.Response, body []byte, said string,
) {
	t.Helper()
	response := op.Responses[strconv.Itoa(res.StatusCode)]
	if response == nil {
		t.Errorf("undocumented status: %s", said)
		return
	}
	if name, ok := strings.CutPrefix(response.Ref, "#/components/responses/"); ok {
		response = doc.Components.Responses[name]
	}
	mediaType, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	if len(body) == 0 && len(response.Content) == 0 {
		return
	}
	if response.Content[mediaType] == nil {
		t.Errorf("undocumented media type %q: %s", mediaType, said)
		return
	}
	if !strings.HasSuffix(mediaType, "json") {
		return
	}
	for _, field := range timesOf("", body) {
		t.Errorf("a time that is not in whole seconds of UTC, %s: %s", field, said)
	}
	if fields := req.URL.Query().Get("fields"); fields != "" && res.StatusCode == http.StatusOK {
		checkFields(t, fields, body, said)
		return
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	if ok, faults := v.ValidateHttpResponse(req, res); !ok {
		var why []string
		for _, f := range faults {
			why = append(why, f.Message+": "+f.Reason)
			for _, s := range f.SchemaValidationErrors {
				why = append(why, s.FieldPath+" "+s.Reason)
			}
		}
		t.Errorf("not as the document says (%s): %s", strings.Join(why, "; "), said)
	}
}

// checkFields: nothing is answered that was not asked for, in items of a list or in what is answered.
func checkFields(t *testing.T, fields string, body []byte, said string) {
	t.Helper()
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(body, &whole); err != nil {
		t.Errorf("%v: %s", err, said)
		return
	}
	answers := []map[string]json.RawMessage{whole}
	if list, is := whole["items"]; is && !strings.Contains(fields, "items") {
		answers = nil
		if err := json.Unmarshal(list, &answers); err != nil {
			t.Errorf("%v: %s", err, said)
		}
	}
	for _, one := range answers {
		for name := range one {
			if !slices.ContainsFunc(strings.Split(fields, ","), func(path string) bool {
				first, _, _ := strings.Cut(path, ".")
				return first == name
			}) {
				t.Errorf("%s was not asked for: %s", name, said)
			}
		}
	}
}

// written is how a time of whatever precision and zone begins and ends.
var written = regexp.MustCompile(`^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$`)

// precise is how a time of an answer is written.
var precise = regexp.MustCompile(seconds.Pattern)

// timesOf lists the texts in a document that are times of another precision, in fields that the document may not even
// know. The data of events is left out: it is answered as it was recorded, by its hash.
func timesOf(path string, raw []byte) []string {
	var fields map[string]json.RawMessage
	var items []json.RawMessage
	var text string
	var out []string
	switch {
	case json.Unmarshal(raw, &fields) == nil:
		for name, value := range fields {
			if _, event := fields["specversion"]; !event || name != "data" {
				out = append(out, timesOf(path+"/"+name, value)...)
			}
		}
	case json.Unmarshal(raw, &items) == nil:
		for i, value := range items {
			out = append(out, timesOf(path+"/"+strconv.Itoa(i), value)...)
		}
	case json.Unmarshal(raw, &text) == nil:
		if written.MatchString(text) && !precise.MatchString(text) && !slices.Contains(broken, text) {
			out = append(out, path+" is "+text)
		}
	}
	return out
}

// TestTimesOf: the walk finds times of another precision or zone, wherever they stand, and nothing else.
func TestTimesOf(t *testing.T) {
	t.Parallel()
	got := timesOf("", []byte(`{"a":[{"at":"2026-01-02T03:04:05.6Z"},"2026-01-02T03:04:05Z","text 2026"],`+
		`"specversion":"1.0","data":{"at":"2026-01-02T03:04:05.6Z"},"time":"2026-01-02T03:04:05+01:00","n":null}`))
	slices.Sort(got)
	want := []string{"/a/0/at is 2026-01-02T03:04:05.6Z", "/time is 2026-01-02T03:04:05+01:00"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	given := os.Getenv(name)
	if given == "" {
		return otherwise
	}
	n, err := strconv.Atoi(given)
	if err != nil {
		t.Fatalf("%s is %q: want a number", name, given)
	}
	return n
}
