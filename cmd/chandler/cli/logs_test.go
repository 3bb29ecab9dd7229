package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/libs/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// logging is a gateway that answers questions about logs one after the other; after the last one it calls end.
func logging(t *testing.T, end func(), parts ...any) (url string, asked func() string) {
	t.Helper()
	var mu sync.Mutex
	var questions []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var answer any = model.Named{Name: "tidegauge.v1", Package: "tidegauge"}
		if !strings.Contains(r.URL.Path, "/named/") {
			questions = append(questions, strings.TrimPrefix(r.URL.RequestURI(), "/api/v1/clusters/"))
			answer = parts[min(len(questions), len(parts))-1]
			if len(questions) == len(parts) {
				end()
			}
		}
		if p, ok := answer.(client.Problem); ok {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(int(p.Status))
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(questions, " ")
	}
}

func logPart(after string, more bool, lines ...client.LogLine) client.OperatorLogs {
	return client.OperatorLogs{
		Containers: 1, Lines: lines, Problems: []client.LogProblem{}, After: after, More: more,
	}
}

// TestLogs is R-TRB-9: chandler logs reads until all is there, as kubectl does, and with --follow until it is ended;
// what cannot be told is on standard error, once.
func TestLogs(t *testing.T) {
	t.Parallel()
	line := func(pod, text string) client.LogLine {
		return client.LogLine{Pod: pod, Container: "manager", Time: "2031-02-03T04:05:06.5Z", Text: text}
	}
	problem := func(status int64, detail string) client.Problem {
		return client.Problem{Title: "Refused", Status: status, Detail: detail}
	}
	away := problem(http.StatusServiceUnavailable, `cluster "east-1" cannot be asked`)
	broken := logPart("b", false, line("a", "two"))
	broken.Problems = []client.LogProblem{{Pod: "b", Container: "proxy", Message: "is waiting to start"}}
	broken.LeftOut, broken.MorePods = 2, true
	unread := logPart("a", false)
	unread.Problems = []client.LogProblem{{Pod: "a", Container: "manager", Message: "is waiting to start"}}
	half := unread
	half.Containers = 2
	empty := logPart("1", false)
	empty.Containers = 0
	several := logPart("a", false, line("a", "one"))
	several.Choices = []client.LogChoice{{Pod: "a", Container: "manager", Containers: []string{"manager", "proxy"}}}
	const at = "east-1/namespaces/ports/operators/tidegauge.v1/logs"
	for name, c := range map[string]struct {
		args   string
		parts  []any
		status int
		out    string
		err    string
		asked  string
	}{
		"all of several parts": {
			"operator/tidegauge",
			[]any{logPart("a", true, line("a", "one")), logPart("b", false, line("a", "two"))},
			0,
			"one\ntwo\n", "", at + " " + at + "?after=a",
		},
		"chosen": {
			"tidegauge -c manager --deployment d --pod a --tail 5 --since 1500ms --timestamps",
			[]any{logPart("a", false, line("a", "one"))},
			0, "2031-02-03T04:05:06.5Z one\n", "",
			at + "?container=manager&deployment=d&pod=a&sinceSeconds=2&tail=5",
		},
		"of several containers": {
			"tidegauge", []any{several}, 0, "one\n", "container manager was taken out of manager, proxy: choose with", at,
		},
		"of two pods": {
			"tidegauge --all-containers",
			[]any{logPart("a", false, line("a", "one"), line("b", "two"))},
			0,
			"[pod/a/manager] one\n[pod/b/manager] two\n", "", at + "?allContainers=true",
		},
		"of two pods, plain": {
			"tidegauge --prefix=false --previous",
			[]any{logPart("a", false, line("a", "one"), line("b", "two"))},
			0,
			"one\ntwo\n", "", at + "?previous=true",
		},
		"for programs": {
			"tidegauge -o json",
			[]any{logPart("a", false, line("a", "one"))},
			0,
			`{"container":"manager","pod":"a","text":"one","time":"2031-02-03T04:05:06.5Z"}` + "\n", "", at,
		},
		"with what is the matter": {
			"tidegauge",
			[]any{broken},
			0, "two\n",
			"warning: pod b, container proxy: is waiting to start\nwarning: 2 more containers of the operator", at,
		},
		"none of which can be read": {
			"tidegauge", []any{unread}, 1, "", "error: no container of operator/east-1/ports/tidegauge.v1 could be read", at,
		},
		"one of which wrote nothing": {"tidegauge", []any{half}, 0, "", "is waiting to start", at},
		"without pods":               {"tidegauge", []any{empty}, 1, "", "has no pods", at},
		"with more pods than are looked at": {
			"tidegauge", []any{broken}, 0, "two\n", "has more pods than are looked at: choose one with --pod", at,
		},
		"followed, beyond a cluster that is away": {
			"tidegauge -f --tail 0",
			[]any{logPart("a", false), away, away, away, logPart("b", false, line("a", "new")), logPart("b", false)},
			0, "new\n", `warning: cluster "east-1" cannot be asked`,
			at + "?fromNow=true " + strings.Repeat(at+"?after=a&fromNow=true ", 4) + at + "?after=b&fromNow=true",
		},
		"a server that goes round": {
			"tidegauge",
			[]any{logPart("a", true), logPart("a", true)},
			1, "", "do not go on",
			at + " " + at + "?after=a",
		},
		"refused": {
			"tidegauge",
			[]any{problem(http.StatusForbidden, "you may not get logs")},
			4, "",
			"you may not get logs", at,
		},
		"both ways":      {"tidegauge -f -p", nil, 2, "", "not both", ""},
		"two containers": {"tidegauge -c a --all-containers", nil, 2, "", "not both", ""},
		"two times":      {"tidegauge --since 1h --since-time 2031-01-01T00:00:00Z", nil, 2, "", "not both", ""},
		"no time":        {"tidegauge --since-time yesterday", nil, 2, "", "want a time", ""},
		"another kind":   {"catalog/fleet", nil, 2, "", "operators have logs", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			end := func() {}
			if strings.Contains(c.args, "-f ") {
				end = cancel
			}
			url, asked := logging(t, end, c.parts...)
			var out, errOut strings.Builder
			s := command.Streams{
				In: strings.NewReader(""), Out: &out, Err: &errOut, Now: time.Now,
				Env: func(string) (string, bool) { return "", false },
			}
			status := Main(ctx, s, append(strings.Fields("--url "+url+" --token x logs --cluster east-1 -n ports"),
				strings.Fields(c.args)...))
			if status != c.status || out.String() != c.out || !strings.Contains(errOut.String(), c.err) {
				t.Errorf("status %d, said %q and %q; want %d, %q and %q", status, out.String(), errOut.String(), c.status, c.out,
					c.err)
			}
			if got := asked(); got != c.asked {
				t.Errorf("asked\n%s\nwant\n%s", got, c.asked)
			}
		})
	}
}
