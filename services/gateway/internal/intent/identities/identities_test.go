package identities_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/identities"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// nobody is a tenant without roles and bindings.
type nobody struct{}

func (nobody) Current(context.Context, string) (*access.Policy, error) {
	return access.NewPolicy(access.State{}, nil), nil
}

// TestNewIdentitiesAreBounded (issue 13, section 1): a provider that vouches for more and more people makes so many
// known within an hour and no more, also where all come at once; who is known goes on, other providers do, and later
// there is room again. It is logged once.
func TestNewIdentitiesAreBounded(t *testing.T) {
	t.Parallel()
	const most = 5
	pool := pgtest.DB(t).Pool(t, "gateway", pg.WithSearchPath("gateway"))
	now, said := time.Now(), bytes.Buffer{}
	s := &identities.Service{
		Units: &unit.Runner{
			Pool: pool, Log: eventlog.New(pool), Clock: func() time.Time { return now }, NewID: uuid.New,
			Slog: slog.New(slog.NewTextHandler(&said, nil)),
		},
		Identities: store.NewIdentities(pool), Tokens: store.NewTokens(pool), Policies: nobody{}, MostNew: most,
	}
	seen := func(provider, subject string) error {
		_, _, err := s.SignedIn(t.Context(), model.Person{
			Tenant: "default", Issuer: "https://" + provider, Subject: subject, Provider: provider,
		})
		return err
	}
	var in, out int
	var mu sync.Mutex
	var done sync.WaitGroup
	for i := range 4 * most {
		done.Go(func() {
			err := seen("house", fmt.Sprint(i))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				in++
			case errs.Is(err, errs.Unavailable) && identities.Refused(err) &&
				strings.Contains(err.Error(), "new-identities"):
				out++
			default:
				t.Error(err)
			}
		})
	}
	done.Wait()
	if in != most || out != 3*most {
		t.Errorf("%d became known and %d did not, want %d and %d", in, out, most, 3*most)
	}
	var rows, events int
	if err := pool.QueryRow(t.Context(), `select (select count(*) from gateway.identities),
		(select count(*) from eventlog.streams where kind = 'access')`).Scan(&rows, &events); err != nil {
		t.Fatal(err)
	}
	if rows != most || events != most {
		t.Errorf("%d rows and %d streams", rows, events)
	}
	if n := strings.Count(said.String(), "no more identities"); n != 1 {
		t.Errorf("it is logged %d times: %s", n, said.String())
	}
	if err := seen("other", "ann"); err != nil {
		t.Errorf("another provider: %v", err)
	}
	again := 0
	for i := range 4 * most {
		if seen("house", fmt.Sprint(i)) == nil {
			again++
		}
	}
	if again != most {
		t.Errorf("%d go on, want %d", again, most)
	}
	now = now.Add(61 * time.Minute)
	if err := seen("house", "late"); err != nil {
		t.Errorf("an hour later: %v", err)
	}
}
