package kinds

import (
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func TestOutputFormats(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	a := &command.Env{Streams: command.Streams{Now: func() time.Time { return now }}}
	r := Clusters(a)
	list := []model.Cluster{
		{
			Name: "east-1", Access: "Hosted", KubernetesVersion: "v1.34.4", RegisteredAt: now.Add(-3 * time.Hour),
			ClusterState: model.ClusterState{
				State: "Connected", StateSince: now.Add(-2 * time.Hour), Connection: "Connected",
			},
			Labels: map[string]string{"b": "2", "a": "1"},
		},
		{
			Name: "w", Access: "Agent",
			ClusterState: model.ClusterState{State: "Unreachable", Reason: "ConnectionRefused"},
			RegisteredAt: now.Add(-90 * time.Second),
		},
	}
	items := make([]printer.Item, len(list))
	for i, c := range list {
		items[i] = clusterItem(a, c)
	}
	for format, want := range map[string]string{
		"": "NAME     STATE         KUBERNETES   AGE\neast-1   Connected     v1.34.4      3h\nw        " +
			"Unreachable   <none>       90s\n",
		"name": "cluster/east-1\ncluster/w\n",
		"wide": "NAME     STATE         KUBERNETES   AGE   REASON              SINCE    ACCESS   LABELS\n" +
			"east-1   Connected     v1.34.4      3h    <none>              120m     Hosted   a=1,b=2\n" +
			"w        Unreachable   <none>       90s   ConnectionRefused   <none>   Agent    <none>\n",
	} {
		var b strings.Builder
		o := printer.Output{Format: format}
		if err := o.Write(&b, r.columns, items, false); err != nil || b.String() != want {
			t.Errorf("-o %q wrote\n%s(%v), want\n%s", format, b.String(), err, want)
		}
	}
	for _, format := range []string{"json", "yaml"} {
		var one, many strings.Builder
		o := printer.Output{Format: format}
		if err := o.Write(&one, nil, items[:1], true); err != nil || strings.Contains(one.String(), "items") {
			t.Errorf("one thing as %s: %s, %v", format, one.String(), err)
		}
		if err := o.Write(&many, nil, items[:1], false); err != nil || !strings.Contains(many.String(), "items") {
			t.Errorf("a list as %s: %s, %v", format, many.String(), err)
		}
	}
}

// clusterItem is the item that the resource shows, by way of its own list function.
func clusterItem(a *command.Env, c model.Cluster) printer.Item {
	i, err := printer.OneItem(c, nil, func(v model.Cluster) printer.Item { return showCluster(a, v) })
	if err != nil {
		panic(err)
	}
	return i
}
