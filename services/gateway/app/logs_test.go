package app_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/app"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestOperatorLogs is R-TRB-9: lines of an operator's pods are asked of its cluster, come by time as JSON and as text,
// and are for those who have the right to get logs; others who see the operator are told so, and the rest sees nothing.
func TestOperatorLogs(t *testing.T) {
	t.Parallel()
	var nats natsconn.Settings
	b := setupWith(t, func(c *app.Config) { nats = c.NATS })
	b.cluster("spoke")
	const csv = "spoke/ops/tidegauge.v1.0.0"
	b.fact(events.Installer, events.KindCSV, csv, csv, events.CSVPhaseChanged{Phase: "Succeeded", Package: "tidegauge"})
	b.do("GET", b.seen("/api/v1/operators"), nil)
	path := "/api/v1/clusters/spoke/namespaces/ops/operators/tidegauge.v1.0.0/logs"
	p := must[problem](b, 503, b.do("GET", path, nil))
	if !strings.Contains(p.Detail, `cluster "spoke" cannot be asked`) {
		t.Errorf("while nobody answers: %+v", p)
	}
	asked := answering(b, nats, protocol.RPCInstallerLogs, func(protocol.OperatorLogQuestion) any {
		return protocol.LogAnswer{After: "1_next", More: true, MorePods: true, Containers: []protocol.ContainerLog{
			{Pod: "a", Container: "manager", Lines: []byte("2031-02-03T04:05:06.3Z late\n2031-02-03T04:05:07Z \xff\n")},
			{
				Pod: "b", Container: "manager", Choices: []string{"manager", "proxy"},
				Lines: []byte("2031-02-03T04:05:06.25Z early\n"), Problem: "cut",
			},
		}}
	})
	b.until(func() bool { return b.do("GET", path, nil).status == 200 })
	<-asked
	query := path + "?deployment=d&pod=a&container=manager&tail=7&sinceSeconds=60&previous=true&after=1"
	got := must[model.OperatorLogs](b, 200, b.do("GET", query, nil))
	want := model.OperatorLogs{
		Containers: 2, MorePods: true, After: "1_next", More: true, Lines: []model.LogLine{
			{Pod: "b", Container: "manager", Time: "2031-02-03T04:05:06.25Z", Text: "early"},
			{Pod: "a", Container: "manager", Time: "2031-02-03T04:05:06.3Z", Text: "late"},
			{Pod: "a", Container: "manager", Time: "2031-02-03T04:05:07Z", Text: "\uFFFD"},
		}, Choices: []model.LogChoice{{Pod: "b", Container: "manager", Containers: []string{"manager", "proxy"}}},
		Problems: []model.LogProblem{{Pod: "b", Container: "manager", Message: "cut"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	tail := int64(7)
	wanted := protocol.OperatorLogQuestion{Tenant: "default", Cluster: "spoke", LogQuestion: protocol.LogQuestion{
		Namespace: "ops", CSV: "tidegauge.v1.0.0", Deployment: "d", Pod: "a", Container: "manager", Previous: true,
		Tail: &tail, SinceSeconds: 60, After: "1",
	}}
	if diff := cmp.Diff(wanted, <-asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	text := b.send(b.url, token, "GET", path+"?timestamps=true&prefix=true", nil, "Accept", "text/plain")
	if lines := strings.SplitN(string(text.body), "\n", 2); lines[0] != "[pod/b/manager] 2031-02-03T04:05:06.25Z early" ||
		text.header.Get("Chandler-Logs-After") != "1_next" ||
		!strings.HasPrefix(text.header.Get("Content-Type"), "text/plain") {
		t.Errorf("as text: %s %v", text.body, text.header)
	}
	must[problem](b, 400, b.do("GET", path+"?container=a&allContainers=true", nil))
	must[problem](b, 404, b.do("GET", strings.Replace(path, "v1.0.0", "v9", 1), nil))

	viewer := b.give(model.AddToken{Name: "viewer", Role: model.RoleNone})
	b.bind("viewer", "viewer", viewer.Actor, model.AccessScope{})
	if p := must[problem](b, 403, b.as(viewer.Secret, "GET", path, nil)); !strings.Contains(p.Detail, "get logs") {
		t.Errorf("a viewer is told %+v", p)
	}
	elsewhere := b.give(model.AddToken{Name: "elsewhere", Role: model.RoleNone})
	b.bind("elsewhere", "operator-admin", elsewhere.Actor, model.AccessScope{Namespaces: []string{"sea"}})
	if a := b.as(elsewhere.Secret, "GET", path, nil); a.status != http.StatusNotFound {
		t.Errorf("who sees another namespace alone: %d %s", a.status, a.body)
	}
}
