package installerclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/internal/installerclient"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

var ann = model.Caller{Tenant: events.DefaultTenant, Actor: "ann"}

// bus answers every request in the same way and keeps the last one.
type bus struct {
	err     error
	subject string
	asked   string
}

func (b *bus) Call(_ context.Context, subject string, in, _ any) error {
	raw, err := json.Marshal(in)
	b.subject, b.asked = subject, string(raw)
	return errors.Join(err, b.err)
}

// TestCheckPlan: R-IP-43: nothing can stand in the way of a plan that has ended, so that its cluster is not asked; a
// cluster that cannot be asked is named; a refusal of the installer is its own.
func TestCheckPlan(t *testing.T) {
	t.Parallel()
	ended := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	open := model.InstallPlan{ID: "p1", Name: "install-a", Cluster: "harbour"}
	over := open
	over.EndedAt, over.Phase = &ended, "Complete"
	for _, c := range []struct {
		name  string
		plan  model.InstallPlan
		err   error
		kind  errs.Kind // "" for none
		words string
		asked bool
	}{
		{"a plan that lives", open, nil, "", "", true},
		{"one that has ended", over, nil, errs.Conflict, "install-a is Complete", false},
		{"a cluster that is away", open, errs.New(errs.Unavailable, "timeout"), errs.Unavailable, `"harbour"`, true},
		{"a plan that is unknown there", open, errs.New(errs.NotFound, "no such plan"), errs.NotFound, "no such", true},
	} {
		b := &bus{err: c.err}
		client := installerclient.Client{Bus: b, Slog: slog.New(slog.DiscardHandler)}
		_, err := client.CheckPlan(t.Context(), ann, c.plan)
		if (err == nil) != (c.kind == "") || err != nil && (!errs.Is(err, c.kind) ||
			!strings.Contains(err.Error(), c.words)) {
			t.Errorf("%s: %v", c.name, err)
		}
		if asked := b.subject == protocol.RPCInstallerCheck; asked != c.asked {
			t.Errorf("%s: asked %v (%s)", c.name, asked, b.subject)
		}
		if c.asked && b.asked != `{"tenant":"default","plan":"p1"}` {
			t.Errorf("%s: asked %s", c.name, b.asked)
		}
	}
}

// TestRemovalPlan: R-UNI-1: the question names the caller's tenant and cluster; a cluster that is away changes nothing,
// and the answer says so.
func TestRemovalPlan(t *testing.T) {
	t.Parallel()
	q := protocol.RemovalQuestion{Namespace: "ops", CSV: "tide.v1"}
	b := &bus{}
	c := installerclient.Client{Bus: b, Slog: slog.New(slog.DiscardHandler)}
	if _, err := c.RemovalPlan(t.Context(), ann, "harbour", q); err != nil {
		t.Fatal(err)
	}
	var asked protocol.OperatorQuestion
	if err := json.Unmarshal([]byte(b.asked), &asked); err != nil || asked.Tenant != "default" ||
		asked.Cluster != "harbour" || asked.CSV != "tide.v1" || b.subject != protocol.RPCInstallerRemoval {
		t.Errorf("asked %s: %s, %v", b.subject, b.asked, err)
	}
	b.err = errs.New(errs.Unavailable, "timeout")
	if _, err := c.RemovalPlan(t.Context(), ann, "harbour", q); !errs.Is(err, errs.Unavailable) ||
		!strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("a cluster that is away: %v", err)
	}
}
