package bus_test

import (
	"strconv"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
)

// The record lost commits that the bus knows: effects stop, and the hints stay as evidence until a
// person resumes (DESIGN D1).
func TestHintBeyondTheLogStopsEffects(t *testing.T) {
	t.Parallel()
	e := setup(t)
	stop := e.sequence("a", e.nats.Bus.Publisher(e.log, e.pool).Lead)
	c := e.catalog("one")
	c.append(10)
	c.sequenced()
	e.eventually("all hints there", e.full)
	stop()
	e.loseCommits(6)
	c.version = 6
	e.sequence("b", e.nats.Bus.Publisher(e.log, e.pool).Lead)
	e.eventually("effects stopped", func() bool {
		s, stopped, err := e.log.EffectsStopped(t.Context())
		return err == nil && stopped && s.Seen == events.Position{Epoch: 1, N: 10} && s.Head.N == 6
	})
	c.append(1)
	if n := len(e.hints()); n != 10 {
		t.Errorf("%d hints: the evidence is gone", n)
	}
	s, _, err := e.log.EffectsStopped(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := e.log.Resume(t.Context(), s.Epoch, "person"); err != nil {
		t.Fatal(err)
	}
	e.eventually("refilled after a person resumed", e.full)
	if p := e.head(); p.Epoch != 2 || p.N != 7 {
		t.Errorf("head is %s, want 2-7", p)
	}
}

// The record loses commits while the publisher is at work, or between two of its looks, and may have gone
// on to the same head or past it: effects stop all the same, and the evidence stays (DESIGN D1).
func TestLossesUnderARunningPublisherStopEffects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		head int64 // where the record stands when the loss is noticed
		lose func(e *env, c *catalog, publish func() (stop func()), stop func())
	}{
		"the head falls back":        {6, func(e *env, _ *catalog, _ func() func(), _ func()) { e.loseCommits(6) }},
		"the head is the same again": {10, func(e *env, _ *catalog, _ func() func(), _ func()) { e.replaceEvent(10) }},
		"the head is past it, and a publisher begins": {
			14,
			func(e *env, c *catalog, publish func() func(), stop func()) {
				stop()
				e.loseCommits(6)
				c.version = 6
				c.append(8)
				c.sequenced()
				publish()
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			e.sequence("a", nil)
			publish := func() (stop func()) { return e.run(e.nats.Bus.Publisher(e.log, e.pool).Lead) }
			stop := publish()
			one := e.catalog("one")
			one.append(10)
			one.sequenced()
			e.eventually("all hints there", e.full)
			c.lose(e, one, publish, stop)
			var s eventlog.Stop
			e.eventually("effects stopped", func() (stopped bool) {
				var err error
				s, stopped, err = e.log.EffectsStopped(t.Context())
				return err == nil && stopped
			})
			if s.Seen != (events.Position{Epoch: 1, N: 10}) || s.Head != (events.Position{Epoch: 1, N: c.head}) ||
				s.Epoch != 2 {
				t.Errorf("stop %+v", s)
			}
			one.version = c.head
			one.append(1)
			one.sequenced()
			if n := len(e.hints()); n != 10 {
				t.Errorf("%d hints: the evidence is gone", n)
			}
			if err := e.log.Resume(t.Context(), s.Epoch, "person"); err != nil {
				t.Fatal(err)
			}
			e.eventually("refilled after a person resumed", e.full)
			if p := e.head(); p != (events.Position{Epoch: 2, N: c.head + 1}) {
				t.Errorf("the epoch was raised again: head %s", p)
			}
		})
	}
}

// replaceEvent makes the record hold another event at a position, as one that lost commits and went on.
func (e *env) replaceEvent(position int64) {
	e.t.Helper()
	_, err := e.db.Pool(e.t, "admin").Exec(e.t.Context(), `update eventlog.events
		set body = body || ' '::bytea, hash = sha256(body || ' '::bytea) where position = $1`, position)
	if err != nil {
		e.t.Fatal(err)
	}
}

// loseCommits takes the record back to a position, as a restored older backup would.
func (e *env) loseCommits(to int64) {
	e.t.Helper()
	_, err := e.db.Pool(e.t, "admin").Exec(e.t.Context(), `with gone as (delete from eventlog.events where position > `+
		strconv.FormatInt(to, 10)+` returning 1)
		update eventlog.sequencer set position = `+strconv.FormatInt(to, 10)+`, until = '-infinity' where (select count(*) from gone) > 0`)
	if err == nil {
		_, err = e.db.Pool(e.t, "admin").Exec(e.t.Context(), `update eventlog.streams set version = `+
			strconv.FormatInt(to, 10))
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

// What is there is compared with the last hint, whatever came since the state was read, and wherever a stream that is
// being filled begins.
func TestLacksHints(t *testing.T) {
	t.Parallel()
	const kept = 100
	type stream = jetstream.StreamState
	for name, c := range map[string]struct {
		state stream
		seq   uint64
		last  int64
		head  int64
		want  bool
	}{
		"all are there":                        {stream{Msgs: 10, FirstSeq: 1}, 10, 10, 10, false},
		"more came since the state was read":   {stream{Msgs: 10, FirstSeq: 1}, 15, 15, 20, false},
		"emptied before, and filled since":     {stream{Msgs: 10, FirstSeq: 501}, 510, 10, 10, false},
		"the first ones are gone":              {stream{Msgs: 8, FirstSeq: 3}, 10, 10, 10, true},
		"one in the middle is gone":            {stream{Msgs: 9, FirstSeq: 1, NumDeleted: 1}, 10, 10, 10, true},
		"as many as it keeps":                  {stream{Msgs: 100, FirstSeq: 901}, 1000, 1000, 1000, false},
		"less than it keeps":                   {stream{Msgs: 99, FirstSeq: 902}, 1000, 1000, 1000, true},
		"filled from a start, not yet all":     {stream{Msgs: 5, FirstSeq: 1}, 5, 905, 1000, false},
		"the same, and the log has gone on":    {stream{Msgs: 5, FirstSeq: 1}, 5, 905, 1050, false},
		"what is gone would not be kept":       {stream{Msgs: 90, FirstSeq: 911}, 1000, 1000, 1010, false},
		"made anew since the state was read":   {stream{Msgs: 90, FirstSeq: 911}, 3, 1003, 1003, false},
		"begins behind what a fill leaves out": {stream{Msgs: 5, FirstSeq: 3}, 7, 907, 1000, true},
	} {
		if got := bus.LacksHints(c.state, c.seq, c.last, c.head-kept); got != c.want {
			t.Errorf("%s: lacks hints: %t", name, got)
		}
	}
}
