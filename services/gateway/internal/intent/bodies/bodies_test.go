package bodies_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	stored "github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/bodies"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/intenttest"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestMetadata: the same annotations keep their commitment, so that they are no change; others get one that tells
// nothing of them; they are read in their own tenant alone, and those that were erased are none.
func TestMetadata(t *testing.T) {
	t.Parallel()
	e := intenttest.New(t)
	commit := func(in model.Metadata, now events.Metadata) (out events.Metadata, err error) {
		err = e.In(intenttest.Ann, func(ctx context.Context, u *unit.Work) (err error) {
			out, err = bodies.CommitMetadata(ctx, u, events.KindSubscription, in, now)
			return err
		})
		return out, err
	}
	read := func(who model.Caller, now events.Metadata) (out model.Metadata) {
		t.Helper()
		if err := e.In(who, func(ctx context.Context, u *unit.Work) (err error) {
			out, err = bodies.Metadata(ctx, u, now)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return out
	}
	in := model.Metadata{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"ticket": "s3cr3t"}}
	first, err := commit(in, events.Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(first.Annotations, "s3cr3t") || first.Annotations == "" {
		t.Errorf("commitment %q", first.Annotations)
	}
	same, err := commit(in, first)
	if err != nil || !same.Equal(first) {
		t.Errorf("the same annotations: %+v, %v, want %+v", same, err, first)
	}
	in.Annotations["ticket"] = "another"
	if other, err := commit(in, first); err != nil || other.Annotations == first.Annotations {
		t.Errorf("other annotations: %+v, %v", other, err)
	}
	if none, err := commit(model.Metadata{}, first); err != nil || !none.Equal(events.Metadata{}) {
		t.Errorf("no annotations: %+v, %v", none, err)
	}
	for name, bad := range map[string]model.Metadata{
		"a key of no form": {Annotations: map[string]string{"a b": "c"}},
		"too much":         {Annotations: map[string]string{"a": strings.Repeat("x", events.MaxAnnotations)}},
	} {
		if _, err := commit(bad, events.Metadata{}); !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	want := model.Metadata{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"ticket": "s3cr3t"}}
	if diff := cmp.Diff(want, read(intenttest.Ann, first)); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if got := read(intenttest.Eve, first); got.Annotations != nil {
		t.Errorf("another tenant reads %+v", got.Annotations)
	}
	if _, err := e.DB.Pool(t, pgtest.Admin).Exec(t.Context(), `delete from gateway.bodies`); err != nil {
		t.Fatal(err)
	}
	if got := read(intenttest.Ann, first); got.Annotations != nil || got.Labels["a"] != "b" {
		t.Errorf("after they were erased: %+v, want the labels alone", got)
	}
}

// TestTakenBack: a body goes with the unit that committed to it.
func TestTakenBack(t *testing.T) {
	t.Parallel()
	e := intenttest.New(t)
	back := errors.New("taken back")
	err := e.In(intenttest.Ann, func(ctx context.Context, u *unit.Work) error {
		if _, err := bodies.Commit(ctx, u, "annotations", []byte(`{}`), ""); err != nil {
			return err
		}
		return back
	})
	if n := e.Count(`select count(*) from gateway.bodies`); !errors.Is(err, back) || n != 0 {
		t.Errorf("%v, %d bodies are stored", err, n)
	}
}

// TestErase: a body that is erased is gone, with its salt; the log keeps the commitment and says who erased it, once.
// A legal hold refuses; another tenant finds nothing.
func TestErase(t *testing.T) {
	t.Parallel()
	e := intenttest.New(t)
	s := &bodies.Service{Units: e.Units}
	store := func(kind stored.Kind, body string) (id string) {
		t.Helper()
		if err := e.In(intenttest.Ann, func(ctx context.Context, u *unit.Work) (err error) {
			id, err = bodies.Commit(ctx, u, kind, []byte(body), "")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return id
	}
	id := store("annotations", `{"ticket": "s3cr3t"}`)
	store("plan-reason", "another one")
	held := &bodies.Service{Units: e.Units, LegalHold: true}
	for name, c := range map[string]struct {
		s    *bodies.Service
		who  model.Caller
		id   string
		kind errs.Kind
		rule string
	}{
		"a legal hold":               {held, intenttest.Ann, id, errs.Conflict, "legal-hold"},
		"another tenant":             {s, intenttest.Eve, id, errs.NotFound, "body-known"},
		"what nobody has written":    {s, intenttest.Ann, "c1:00", errs.NotFound, "body-known"},
		"the same under a hold only": {held, intenttest.Ann, "c1:00", errs.Conflict, "legal-hold"},
	} {
		_, err := c.s.Erase(t.Context(), c.who, c.id)
		var told *errs.Error
		if !errors.As(err, &told) || told.Kind != c.kind || told.Rule != c.rule {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := e.Count(`select count(*) from gateway.bodies`); n != 2 {
		t.Fatalf("%d bodies are left of 2 that were refused", n)
	}
	first, err := s.Erase(t.Context(), intenttest.Ann, id)
	if err != nil || first.Kind != "annotations" || first.ErasedBy != "ann" || !first.ErasedAt.Equal(e.Now) {
		t.Fatalf("erased %+v, %v", first, err)
	}
	if again, err := s.Erase(t.Context(), intenttest.Bob, id); err != nil || again != first {
		t.Errorf("erased again %+v, %v", again, err)
	}
	if n := e.Count(`select count(*) from gateway.bodies where kind = 'annotations'`); n != 0 {
		t.Error("the body is still there")
	}
	recorded := e.Recorded(intenttest.Ann, events.KindAccess, "body/"+id)
	if len(recorded) != 1 || recorded[0].Actor != "ann" || recorded[0].Payload !=
		(events.BodyErased{Body: id, Kind: "annotations"}) {
		t.Errorf("recorded %+v", recorded)
	}
	if _, err := e.DB.Pool(t, "gateway").Exec(t.Context(), `delete from gateway.erased_bodies`); err == nil {
		t.Error("the gateway's role forgets what was erased")
	}
}
