package sharedobject_test

import (
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/installer/sharedobject"
)

// TestDecide is the table of shared objects (DESIGN §1 Shared objects).
func TestDecide(t *testing.T) {
	t.Parallel()
	own := func(wants string) sharedobject.Owner {
		return sharedobject.Owner{Namespace: "north", Package: "gauge", CSV: "gauge.v2", Wants: wants}
	}
	rival := func(wants string) sharedobject.Owner {
		return sharedobject.Owner{Namespace: "south", Package: "rival", CSV: "rival.v1", Wants: wants}
	}
	third := sharedobject.Owner{Namespace: "west", Package: "third", CSV: "third.v1", Wants: "new"}
	sister := func(wants string) sharedobject.Owner {
		return sharedobject.Owner{Namespace: "east", Package: "gauge", CSV: "gauge.v1", Wants: wants}
	}
	of := func(o ...sharedobject.Owner) []sharedobject.Owner { return o }
	at := func(o sharedobject.Owner) *sharedobject.Owner { return &o }
	before := own("old")
	before.CSV = "gauge.v1"
	for name, c := range map[string]struct {
		in      sharedobject.Input
		want    sharedobject.Outcome
		elected string // namespace
	}{
		"nobody else has the object": {
			sharedobject.Input{Writer: own("new")},
			sharedobject.Hold, "north",
		},
		"an upgrade of what nobody else has": {sharedobject.Input{
			Writer: own("new"), Holder: &before,
			Before: "old",
		}, sharedobject.Hold, "north"},
		"both want the same form": {
			sharedobject.Input{
				Writer: own("new"), Holder: at(rival("new")), Others: of(rival("new")), Equal: true,
			},
			sharedobject.Share,
			"south",
		},
		"they want different forms": {sharedobject.Input{
			Writer: own("new"), Holder: at(rival("old")), Others: of(rival("old")),
		}, sharedobject.Ask, ""},
		"different, and theirs kept": {
			sharedobject.Input{
				Writer: own("new"), Holder: at(rival("old")), Others: of(rival("old")), Choice: events.ChoiceKeep,
			},
			sharedobject.Share, "south",
		},
		"different, and mine taken": {
			sharedobject.Input{
				Writer: own("new"), Holder: at(rival("old")), Others: of(rival("old")), Choice: events.ChoiceTake,
			},
			sharedobject.Hold, "north",
		},
		"different, and settled before": {
			sharedobject.Input{
				Writer: own("new"), Holder: at(rival("old")), Others: of(rival("old")), Before: "new",
			},
			sharedobject.Share,
			"south",
		},
		"an upgrade of what another wants as it was": {sharedobject.Input{
			Writer: own("new"), Holder: &before,
			Others: of(rival("old")), Before: "old",
		}, sharedobject.Ask, ""},
		"the same upgrade, and taken": {sharedobject.Input{
			Writer: own("new"), Holder: &before,
			Others: of(rival("old")), Before: "old", Choice: events.ChoiceTake,
		}, sharedobject.Hold, "north"},
		"the same, kept: the other one holds it": {sharedobject.Input{
			Writer: own("new"), Holder: &before,
			Others: of(rival("old")), Before: "old", Choice: events.ChoiceKeep,
		}, sharedobject.Share, "south"},
		"kept, and nobody wants it as it was": {sharedobject.Input{
			Writer: own("new"), Holder: &before,
			Others: of(rival("other")), Before: "old", Choice: events.ChoiceKeep,
		}, sharedobject.Ask, ""},
		"an upgrade that others have waited for": {sharedobject.Input{
			Writer: own("new"), Holder: &before,
			Others: of(rival("new"), third), Before: "old",
		}, sharedobject.Hold, "north"},
		"an upgrade for which one of two has waited": {sharedobject.Input{
			Writer: own("new"), Holder: &before,
			Others: of(rival("old"), third), Before: "old",
		}, sharedobject.Ask, ""},
		"an upgrade that changes nothing of it": {sharedobject.Input{
			Writer: own("new"), Holder: &before,
			Others: of(rival("old")), Before: "new",
		}, sharedobject.Hold, "north"},
		"an upgrade of one that does not hold it": {
			sharedobject.Input{
				Writer: own("new"), Holder: at(rival("old")), Others: of(rival("old")), Before: "older",
			},
			sharedobject.Ask,
			"",
		},
		"the package holds it elsewhere": {sharedobject.Input{
			Writer: own("new"), Holder: at(sister("old")), Others: of(sister("old")),
		}, sharedobject.Hold, "north"},
		"the package holds it elsewhere, and is equal": {
			sharedobject.Input{
				Writer: own("new"), Holder: at(sister("new")), Others: of(sister("new")), Equal: true,
			},
			sharedobject.Share,
			"east",
		},
		"the package holds it elsewhere, and a rival has it": {
			sharedobject.Input{
				Writer: own("new"), Holder: at(sister("old")), Others: of(sister("old"), rival("old")),
			},
			sharedobject.Ask,
			"",
		},
	} {
		got := sharedobject.Decide(c.in)
		if got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
		elected := ""
		if o := c.in.Elected(got); o != nil {
			elected = o.Namespace
		}
		if elected != c.elected {
			t.Errorf("%s: %q holds it, want %q", name, elected, c.elected)
		}
	}
}

// TestFinding: a choice counts for the forms and owners that the person saw, whatever their versions (DESIGN D6).
func TestFinding(t *testing.T) {
	t.Parallel()
	writer := sharedobject.Owner{Namespace: "north", Package: "gauge", CSV: "gauge.v1", Wants: "mine"}
	holder := sharedobject.Owner{Namespace: "south", Package: "rival", CSV: "rival.v1", Wants: "theirs"}
	finding := func(change func(*sharedobject.Input)) string {
		in := sharedobject.Input{Writer: writer, Holder: &sharedobject.Owner{}, Others: []sharedobject.Owner{holder}}
		*in.Holder = holder
		change(&in)
		f, err := in.Finding("ClusterRole/r", "live")
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	base := finding(func(*sharedobject.Input) {})
	if finding(func(in *sharedobject.Input) {
		in.Writer.CSV, in.Holder.CSV, in.Equal = "gauge.v2", "rival.v2",
			true
	}) != base {
		t.Error("another version with the same forms is another finding")
	}
	for name, change := range map[string]func(*sharedobject.Input){
		"what the plan brings":  func(in *sharedobject.Input) { in.Writer.Wants = "other" },
		"what the holder wants": func(in *sharedobject.Input) { in.Holder.Wants = "other" },
		"who else has it": func(in *sharedobject.Input) {
			in.Others = append(in.Others, sharedobject.Owner{Namespace: "w", Package: "p"})
		},
		"a holder without a note":  func(in *sharedobject.Input) { in.Holder.Wants = "" },
		"the writer's form before": func(in *sharedobject.Input) { *in.Holder, in.Before = writer, "was" },
	} {
		if finding(change) == base {
			t.Errorf("%s makes no other finding", name)
		}
	}
}

// TestNormalize: who brought an object, and in which order rights are written, makes no difference; what acts does.
func TestNormalize(t *testing.T) {
	t.Parallel()
	const head = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":`
	role := head +
		`{"name":"r"},"rules":[{"apiGroups":[""],"resources":["pods","nodes"],"verbs":["get"]},{"nonResourceURLs":["/metrics"],"verbs":["get"]}]}`
	base := digestOf(t, role)
	for name, text := range map[string]string{
		"rules in another order": head +
			`{"name":"r"},"rules":[{"nonResourceURLs":["/metrics"],"verbs":["get"]},{"apiGroups":[""],"resources":["nodes","pods"],"verbs":["get","get"]}]}`,
		"labels that say who": head +
			`{"name":"r","labels":{"app.kubernetes.io/created-by":"x","olm.owner":"y","operators.coreos.com/a.b":""}},"rules":[{"apiGroups":[""],"resources":["pods","nodes"],"verbs":["get"]},{"nonResourceURLs":["/metrics"],"verbs":["get"]}]}`,
		"what the cluster notes": head +
			`{"name":"r","uid":"1","resourceVersion":"2","managedFields":[],"annotations":{"chandler-fleet.io/plan":"p","operatorframework.io/installed-alongside-1":"a/b"}},"rules":[{"apiGroups":[""],"resources":["pods","nodes"],"verbs":["get"]},{"nonResourceURLs":["/metrics"],"verbs":["get"]}]}`,
		"an order of fields, a space": `{ "kind":"ClusterRole",` +
			role[len(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole",`):len(role)-1] +
			`,"apiVersion":"rbac.authorization.k8s.io/v1"}`,
	} {
		if digestOf(t, text) != base {
			t.Errorf("%s: another form", name)
		}
	}
	for name, text := range map[string]string{
		"another right": head + `{"name":"r"},"rules":[{"nonResourceURLs":["/all"],"verbs":["get"]}]}`,
		"a label that may act": head +
			`{"name":"r","labels":{"rbac.authorization.k8s.io/aggregate-to-edit":"true"}},"rules":[{"apiGroups":[""],"resources":["pods","nodes"],"verbs":["get"]},{"nonResourceURLs":["/metrics"],"verbs":["get"]}]}`,
		"other objects' orders": `{"apiVersion":"v1","kind":"ConfigMap","rules":[2,1]}`,
	} {
		if digestOf(t, text) == base {
			t.Errorf("%s: the same form", name)
		}
	}
}

func digestOf(t *testing.T, text string) string {
	t.Helper()
	var o map[string]any
	if err := utiljson.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	d, err := sharedobject.Digest(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
