package preview_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/preview"
)

func write(t *testing.T, before string, p events.Payload) preview.Write {
	t.Helper()
	h, err := previewapi.NewHypothesis("c/n/s", 1, p)
	if err != nil {
		t.Fatal(err)
	}
	return preview.Write{
		Subject: "c/n/s", Stream: "subscription:x:1", Before: before,
		Hypotheses: []previewapi.Hypothesis{h},
	}
}

// TestChangedNamesWhatIsNotTheSame: the same events on the same states hold, however a database writes their JSON.
func TestChangedNamesWhatIsNotTheSame(t *testing.T) {
	t.Parallel()
	spec := events.SubscriptionSpec{Package: "p", Config: "c1:x"}
	kept := preview.Kept{Writes: []preview.Write{write(t, "b", events.SubscriptionChanged{Spec: spec})}}
	same := write(t, "b", events.SubscriptionChanged{Spec: spec})
	same.Hypotheses[0].Data = json.RawMessage(
		`{ "spec": {"config": "c1:x", "approval": "", "catalog": "", "package": "p"} }`)
	if changed := kept.Changed([]preview.Write{same}); changed != nil {
		t.Errorf("changed %v", changed)
	}
	other := spec
	other.Config = "c1:y"
	elsewhere := write(t, "b", events.SubscriptionChanged{Spec: spec})
	elsewhere.Stream = "subscription:x:2"
	for name, now := range map[string][]preview.Write{
		"another state":      {write(t, "B", events.SubscriptionChanged{Spec: spec})},
		"another commitment": {write(t, "b", events.SubscriptionChanged{Spec: other})},
		"another type":       {write(t, "b", events.SubscriptionCreated{Spec: spec})},
		"another life":       {elsewhere},
		"nothing":            {},
		"nothing to say":     {{Subject: "c/n/s", Stream: "subscription:x:1", Before: "b"}},
	} {
		if diff := cmp.Diff([]string{"c/n/s"}, kept.Changed(now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	commitments, err := preview.AllCommitments([]preview.Write{
		kept.Writes[0], write(t, "b", events.SubscriptionDeleted{}),
		write(t, "b", events.SubscriptionCreated{Spec: other}), write(t, "b", events.CatalogChanged{Spec: "c1:z"}),
		write(t, "b", events.OperatorGroupMetadataChanged{Metadata: events.Metadata{Annotations: "c1:n"}}),
		write(t, "b", events.ApprovalPolicyMetadataChanged{Metadata: events.Metadata{Annotations: "c1:p"}}),
	})
	if diff := cmp.Diff([]string{"c1:x", "", "", "", "c1:y", "", "c1:z", "", "", "c1:n", "", "c1:p"},
		commitments); err != nil || diff != "" {
		t.Errorf("commitments by write, %v (-want +got):\n%s", err, diff)
	}
}
