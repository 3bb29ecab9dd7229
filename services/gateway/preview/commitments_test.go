package preview_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/preview"
)

// TestCommitmentsOfEveryEvent: every event of a preview that holds a commitment is found, so that what was
// committed to is kept until the preview expires, and committed to in the same words when it is carried out. The fields
// are found by their types: an event that is new cannot be forgotten.
func TestCommitmentsOfEveryEvent(t *testing.T) {
	t.Parallel()
	previewed := map[events.Kind]bool{
		events.KindSubscription: true, events.KindOperatorGroup: true, events.KindCatalog: true,
		events.KindPolicy: true,
	}
	found := 0
	for _, d := range events.All() {
		if !previewed[d.Kind] || d.Writer != events.Gateway || d.Type == (events.CatalogAdded{}).EventType() {
			continue // a catalog that nobody has read yet cannot be previewed
		}
		p := reflect.New(reflect.TypeOf(d.Zero())).Elem()
		var want preview.Commitments
		for i := range p.NumField() {
			switch f := p.Field(i); f.Interface().(type) {
			case events.SubscriptionSpec:
				want.Body = "c1:body"
				f.Set(reflect.ValueOf(events.SubscriptionSpec{Config: want.Body}))
			case events.Metadata:
				want.Annotations = "c1:annotations"
				f.Set(reflect.ValueOf(events.Metadata{Annotations: want.Annotations}))
			case string:
				if p.Type().Field(i).Name == "Spec" {
					want.Body = "c1:settings"
					f.SetString(want.Body)
				}
			}
		}
		if want != (preview.Commitments{}) {
			found++
		}
		payload, _ := reflect.TypeAssert[events.Payload](p)
		got, err := preview.CommitmentsOf([]preview.Write{write(t, "b", payload)})
		if diff := cmp.Diff([]preview.Commitments{want}, got); err != nil || diff != "" {
			t.Errorf("%s, %v (-want +got):\n%s", d.Type, err, diff)
		}
	}
	if found < 7 {
		t.Errorf("%d events with commitments were tried", found)
	}
}
