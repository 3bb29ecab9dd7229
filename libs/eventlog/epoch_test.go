package eventlog_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pglocal"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
)

// restored is a log whose database was dumped at one event and restored after three: somebody has
// seen position 1-3, the record ends at 1-1.
func restored(t *testing.T) (b bundle, seen events.Position) {
	t.Helper()
	b = newBundle(t)
	term := b.lead(t)
	b.mustAppend(t, "east", 0, registered("east"))
	b.sequenceAll(t, term)
	dump, err := pglocal.Dump(t.Context(), b.db.URL(pgtest.Admin))
	if err != nil {
		t.Fatal(err)
	}
	b.mustAppend(t, "east", 1, replaced(1), replaced(2))
	b.sequenceAll(t, term)
	seen, err = b.log.Head(t.Context(), b.pool)
	if err != nil {
		t.Fatal(err)
	}

	empty := pgtest.Empty(t)
	if err := pglocal.Restore(t.Context(), empty.URL(pgtest.Admin), dump); err != nil {
		t.Fatal(err)
	}
	pool := empty.Pool(t, "gateway")
	return bundle{db: empty, admin: empty.Pool(t, pgtest.Admin), pool: pool, log: eventlog.New(pool)}, seen
}

// D1: a restored older backup raises the epoch once, stops effects until a person resumes, and says
// how; the log goes on in the new epoch, and a reader from before misses nothing of it.
func TestRestoredBackup(t *testing.T) {
	t.Parallel()
	b, seen := restored(t)
	ctx := t.Context()
	if _, stopped, err := b.log.EffectsStopped(ctx); err != nil || stopped {
		t.Fatalf("before anybody compares: %v %v", stopped, err)
	}
	if err := b.log.CheckEpoch(ctx, events.Position{Epoch: 1, N: 1}, "cluster west"); err != nil {
		t.Errorf("a position that the record holds: %v", err)
	}

	// Many notice at once.
	said := make([]error, 8)
	var wg sync.WaitGroup
	for i := range said {
		wg.Go(func() { said[i] = b.log.CheckEpoch(ctx, seen, fmt.Sprintf("cluster c%d", i)) })
	}
	wg.Wait()
	noticed := 0
	for _, err := range said {
		if err == nil {
			continue
		}
		noticed++
		if !errs.Is(err, errs.Unavailable) || !strings.Contains(
			err.Error(), "has seen the log up to 1-3, the record ended at 1-1") ||
			!strings.Contains(err.Error(), "resume with epoch 2") {
			t.Errorf("what is said: %v", err)
		}
	}
	if noticed != 1 {
		t.Errorf("the epoch was raised %d times, want once", noticed)
	}
	if err := b.log.CheckEpoch(ctx, seen, "cluster late"); err != nil {
		t.Errorf("who comes later: %v", err)
	}
	stop, stopped, err := b.log.EffectsStopped(ctx)
	if err != nil || !stopped || stop.Epoch != 2 || stop.Seen != seen ||
		stop.Head != (events.Position{Epoch: 1, N: 1}) || stop.Reason != "RecordLostCommits" {
		t.Errorf("stop %+v %v %v", stop, stopped, err)
	}

	// The log goes on; who had seen 1-3 gets what comes after.
	if _, err := b.admin.Exec(ctx, "update eventlog.sequencer set until = '-infinity'"); err != nil {
		t.Fatal(err)
	}
	term := b.lead(t)
	b.mustAppend(t, "east", 1, replaced(9))
	b.sequenceAll(t, term)
	list, at, err := b.log.ReadAfter(ctx, b.pool, seen, eventlog.Filter{}, 10)
	if err != nil || len(list) != 1 || list[0].Position != (events.Position{Epoch: 2, N: 2}) ||
		at != list[0].Position || !seen.Less(at) {
		t.Errorf("behind %s: %v at %s, %v", seen, list, at, err)
	}

	resume(t, b)
}

// resume tries the wrong ways to resume, then the right one.
func resume(t *testing.T, b bundle) {
	t.Helper()
	ctx := t.Context()
	if err := eventlog.New(b.db.Pool(t, "installer")).Resume(ctx, 2, "actor"); !errs.Is(err, errs.Forbidden) {
		t.Errorf("the installer resumes: %v", err)
	}
	if err := b.log.Resume(ctx, 1, "actor"); !errs.Is(err, errs.Conflict) ||
		!strings.Contains(err.Error(), "the epoch is 2, not 1") {
		t.Errorf("resume with the epoch of before: %v", err)
	}
	if _, stopped, err := b.log.EffectsStopped(ctx); err != nil || !stopped {
		t.Errorf("after refused attempts: %v %v", stopped, err)
	}
	for range 2 {
		if err := b.log.Resume(ctx, 2, "actor"); err != nil {
			t.Errorf("resume: %v", err)
		}
	}
	if _, stopped, err := b.log.EffectsStopped(ctx); err != nil || stopped {
		t.Errorf("after resume: %v %v", stopped, err)
	}
	// Another loss stops again: this time of commits of epoch 2.
	if err := b.log.CheckEpoch(ctx, events.Position{Epoch: 2, N: 99}, "bus"); !errs.Is(err, errs.Unavailable) {
		t.Errorf("another loss: %v", err)
	}
	if stop, stopped, err := b.log.EffectsStopped(ctx); err != nil || !stopped || stop.Epoch != 3 ||
		stop.Source != "bus" {
		t.Errorf("another loss: %+v %v %v", stop, stopped, err)
	}
}

// A record that has been restored twice ends in an epoch above every one that anybody has seen.
func TestEpochRisesAboveWhatWasSeen(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	if err := b.log.CheckEpoch(t.Context(), events.Position{Epoch: 5, N: 2}, "cluster east"); err == nil {
		t.Error("epoch 5 is known in a log of epoch 1")
	}
	head, err := b.log.Head(t.Context(), b.pool)
	if err != nil || head.Epoch != 6 {
		t.Errorf("head %s %v", head, err)
	}
}

// A record that lost commits and has gone on holds other events at the same positions: who knows the hash
// notices, at a position that is not beyond the head too, once however many notice (D1).
func TestRecordThatWentOnAfterALoss(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	ctx := t.Context()
	b.mustAppend(t, "east", 0, registered("east"), replaced(1), replaced(2))
	b.sequenceAll(t, b.lead(t))
	list := b.readAll(t)
	for _, r := range list {
		if err := b.log.CheckEvent(ctx, r.Position, r.Hash, "bus"); err != nil {
			t.Errorf("an event that the record holds: %v", err)
		}
	}
	seen := list[1].Position
	if err := b.log.CheckEvent(ctx, seen, "sha256:xyz", "bus"); !errs.Is(err, errs.Invalid) {
		t.Errorf("what is no hash: %v", err)
	}
	said := make([]error, 6)
	var wg sync.WaitGroup
	for i, role := range []string{"gateway", "resolver", "installer", "catalog-indexer", "gateway", "resolver"} {
		l := eventlog.New(b.db.Pool(t, role))
		wg.Go(func() { said[i] = l.CheckEvent(ctx, seen, list[0].Hash, "bus") })
	}
	wg.Wait()
	noticed := 0
	for _, err := range said {
		if err == nil || errs.Is(err, errs.Forbidden) { // who came first, and does not lead, leaves it to the others
			continue
		}
		noticed++
		if !errs.Is(err, errs.Unavailable) || !strings.Contains(
			err.Error(), "has seen an event at 1-2 that the record, which had come to 1-3, does not hold") {
			t.Errorf("what is said: %v", err)
		}
	}
	if noticed != 1 {
		t.Errorf("the epoch was raised %d times, want once", noticed)
	}
	stop, stopped, err := b.log.EffectsStopped(ctx)
	if err != nil || !stopped || stop.Epoch != 2 || stop.Seen != seen || stop.Head != list[2].Position ||
		stop.Reason != "RecordLostCommits" {
		t.Errorf("stop %+v %v %v", stop, stopped, err)
	}
	if err := b.log.CheckEvent(ctx, events.Position{Epoch: 2, N: 9}, list[0].Hash, "bus"); !errs.Is(
		err, errs.Unavailable) {
		t.Errorf("an event beyond the head: %v", err)
	}
}

// Every service may notice a loss while it leads, gateway and installer also otherwise.
func TestEveryRoleMayCheck(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	for i, role := range []string{"gateway", "resolver", "installer", "catalog-indexer"} {
		pool := b.db.Pool(t, role)
		l := eventlog.New(pool)
		if _, err := b.admin.Exec(t.Context(), "update eventlog.sequencer set until = '-infinity'"); err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Exec(t.Context(), "select eventlog.lead($1, interval '5 s')", role); err != nil {
			t.Fatal(err)
		}
		if err := l.CheckEpoch(t.Context(), events.Position{Epoch: int64(i) + 1, N: 9}, role); !errs.Is(
			err, errs.Unavailable) {
			t.Errorf("%s: %v", role, err)
		}
		if err := l.CheckEpoch(t.Context(), events.Position{Epoch: 1, N: 0}, role); err != nil {
			t.Errorf("%s: %v", role, err)
		}
	}
	err := b.pool.Tx(t.Context(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "update eventlog.sequencer set epoch = 99")
		return err
	})
	if !errs.Is(pg.Err(err), errs.Forbidden) {
		t.Errorf("by hand: %v", err)
	}
}
