package app_test

import (
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestHiddenPlaces: ids of streams follow from names, and a caller learns by none of them whether a stream is there
// that they may not see: not by a read behind it, a list of events or a stream of them. Who wrote to it, and who may
// see it, reads on (the section 1: lists and streams contain only what one may see).
func TestHiddenPlaces(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	must[model.AccessRole](b, 200, b.do("PUT", "/api/v1/roles/writer", model.RoleSpec{Rules: []model.AccessRule{
		{Resources: []string{"subscriptions"}, Verbs: []string{"create", "list"}},
	}}))
	writer := b.give(model.AddToken{Name: "writer", Role: model.RoleNone})
	b.bind("writer", "writer", writer.Actor, model.AccessScope{})
	must[model.Subscription](b, 201, b.as(writer.Secret, "POST", subscriptions, subscribe("gauge", "tidegauge")))
	eve := b.give(model.AddToken{Name: "eve", Role: model.RoleNone})
	b.bind("eve", "viewer", eve.Actor, model.AccessScope{Namespaces: []string{"sea"}})
	ann := b.give(model.AddToken{Name: "ann", Role: model.RoleNone})
	b.bind("ann", "viewer", ann.Actor, model.AccessScope{Namespaces: []string{"ops"}})

	hidden, missing := url.QueryEscape(streamID("gauge")+"@1"), url.QueryEscape(streamID("none")+"@1")
	const list = "/api/v1/subscriptions?minPosition="
	for _, bearer := range []string{writer.Secret, ann.Secret, token} {
		must[struct{}](b, 200, b.as(bearer, "GET", list+hidden, nil))
	}
	paths := []string{
		list, "/api/v1/subscriptions?watch=true&minPosition=", "/api/v1/events?after=", "/api/v1/events/stream?after=",
	}
	told := make([][2]answer, len(paths))
	var asked sync.WaitGroup // each waits as long as for a write without a position
	for i, path := range paths {
		for j, of := range []string{hidden, missing} {
			asked.Go(func() { told[i][j] = b.as(eve.Secret, "GET", path+of, nil) })
		}
	}
	asked.Wait()
	for i, path := range paths {
		of := strings.ReplaceAll(must[problem](b, 504, told[i][0]).Detail, streamID("gauge"), "STREAM")
		none := strings.ReplaceAll(must[problem](b, 504, told[i][1]).Detail, streamID("none"), "STREAM")
		if of != none || !strings.Contains(of, "STREAM") {
			t.Errorf("%s: of a hidden stream is told %q, of none %q", path, of, none)
		}
	}
}

// streamID is that of a subscription in spoke/ops.
func streamID(name string) string {
	return events.StreamID{
		Kind: events.KindSubscription, Key: events.Key("default", events.KindSubscription, "spoke/ops/"+name),
		Incarnation: 1,
	}.String()
}
