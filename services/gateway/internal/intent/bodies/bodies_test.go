package bodies_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
