package eventlist

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const (
	// tailEvents bounds the events that a tail remembers, and so how far a client may fall behind: a minute of a
	// fleet that is busy (DESIGN §7).
	tailEvents = 8192
	// tailBytes bounds their JSON; an event has about a kilobyte.
	tailBytes = 16 << 20
	// tailBatch is how many events a tail reads at a time.
	tailBatch = 1000
	// pollInterval is how often a tail polls by itself: notices are hints and may be lost.
	pollInterval = time.Second
)

// ErrBehind is the end of a follower that was slower than the log for longer than the tail remembers. Who comes
// again with the last position misses nothing.
var ErrBehind = errs.New(errs.Unavailable, "the client reads events more slowly than they come: go on with the last id")

// Sessions tells which sessions are good.
type Sessions interface {
	// Good returns those of the sessions that let somebody in still, with the version of roles and bindings of their
	// tenants.
	Good(ctx context.Context, list []model.Session) (map[model.Session]events.Position, error)
}

// Policies tells who may do what in a tenant. It reads nothing while the version stays.
type Policies interface {
	Policy(ctx context.Context, tenant string, version events.Position) (*access.Policy, error)
}

// Tail reads the end of the log once for all who follow it in this process. It remembers a bounded part; who begins
// before that part reads by himself until he has come to it. While nobody follows it reads nothing.
//
// It reads events of all tenants: what a follower gets is decided by its selection, which holds its tenant.
type Tail struct {
	reads    *Reader
	log      pg.Querier
	sessions Sessions
	policies Policies

	mu        sync.Mutex
	followers map[*Follower]struct{}
	joined    chan struct{} // has an element when somebody follows who was not there before
	moved     chan struct{} // closed when there is something for followers
	held      int           // by how many that read by themselves what is remembered
	kept      []tailed      // in order; what lies behind from, up to to. Never changed in place
	bytes     int
	from, to  events.Position // zero: the tail has not begun
}

// tailed is an event of the tail.
type tailed struct {
	item  model.StreamedEvent
	event eventlog.Recorded // what selections ask for
}

// NewTail makes a tail, which reads while Run runs.
func NewTail(reads *Reader, log pg.Querier, sessions Sessions, policies Policies) *Tail {
	return &Tail{
		reads: reads, log: log, sessions: sessions, policies: policies, followers: map[*Follower]struct{}{},
		joined: make(chan struct{}, 1), moved: make(chan struct{}),
	}
}

// Follower is one who follows. Its methods but Leave are for one goroutine.
type Follower struct {
	tail   *Tail
	who    model.Caller
	filter model.EventFilter
	chosen selection // under tail.mu, as what the follower may see changes
	live   bool      // it was served from memory
	ended  error     // under tail.mu: why it gets nothing more
}

// Join begins to follow what a filter chooses, while the caller's session is good. Leave ends it.
func (t *Tail) Join(who model.Caller, f model.EventFilter) (*Follower, error) {
	chosen, err := selectEvents(who, access.Watch, f)
	if err != nil {
		return nil, err
	}
	return t.join(&Follower{tail: t, who: who, filter: f, chosen: chosen}), nil
}

// JoinUnseen begins to follow every event of the caller's tenant, while the caller's session is good: for who reads
// with the caller's rights what events are about, and shows nothing of the events themselves.
func (t *Tail) JoinUnseen(who model.Caller) *Follower {
	s := selection{log: eventlog.Filter{Tenant: who.Tenant, Raw: true}, told: true}
	return t.join(&Follower{tail: t, who: who, chosen: s.seenBy(who, access.Watch)})
}

func (t *Tail) join(one *Follower) *Follower {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.followers[one] = struct{}{}
	t.tell()
	return one
}

// Leave ends the following.
func (f *Follower) Leave() {
	f.tail.mu.Lock()
	defer f.tail.mu.Unlock()
	delete(f.tail.followers, f)
}

// Moved is closed when there may be something new; it is taken before Next and waited for after.
func (f *Follower) Moved() <-chan struct{} { return f.tail.Moved() }

// Moved is closed when there may be something new.
func (t *Tail) Moved() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.moved
}

// Hold has the tail read for one who asks by Behind, until the hold is released.
func (t *Tail) Hold() (release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held++
	t.tell()
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.held--
	})
}

// memory is what is remembered now; mu is held.
func (t *Tail) memory() memory { return memory{t.kept, t.from, t.to} }

// tell wakes the tail; mu is held.
func (t *Tail) tell() {
	select {
	case t.joined <- struct{}{}:
	default: // it has been told
	}
}

// Behind returns at most limit events behind the position of a filter that a caller may watch, the position to go on
// from, and whether that is the end for now: from memory where that reaches back so far. Whose rights decide, and
// whether they still hold, is for who asks.
func (t *Tail) Behind(ctx context.Context, who model.Caller, f model.EventFilter) (
	items []model.StreamedEvent, next events.Position, done bool, err error,
) {
	chosen, err := selectEvents(who, access.Watch, f)
	if err != nil {
		return nil, next, false, err
	}
	after, err := events.ParsePosition(f.After)
	if err != nil {
		return nil, next, false, errs.New(errs.Invalid, "%s", err).At("query.after", "position")
	}
	t.mu.Lock()
	memory := t.memory()
	t.mu.Unlock()
	if items, next, done, known := memory.behind(chosen, after, f.Limit); known {
		return items, next, done, nil
	}
	return t.stored(ctx, chosen, f)
}

// Next returns at most limit events behind a position, the position to go on from, and whether that is the end for
// now. An error of kind errs.Unauthenticated says that the token is not good any more, ErrBehind that the follower was
// too slow.
func (f *Follower) Next(ctx context.Context, after events.Position, limit int) (
	[]model.StreamedEvent, events.Position, bool, error,
) {
	f.tail.mu.Lock()
	ended, chosen, memory := f.ended, f.chosen, f.tail.memory()
	f.tail.mu.Unlock()
	if ended != nil {
		return nil, after, false, ended
	}
	items, next, done, remembered := memory.behind(chosen, after, limit)
	switch {
	case remembered:
		f.live = true
		return items, next, done, nil
	case f.live:
		return nil, after, false, ErrBehind
	}
	version, err := f.good(ctx)
	for err == nil {
		var who model.Caller
		if who, err = f.tail.seen(ctx, f.who, version); err != nil {
			break
		}
		filter := f.filter
		filter.After, filter.Limit = after.String(), limit
		if items, next, done, err = f.tail.stored(ctx, chosen.seenBy(who, access.Watch), filter); err != nil {
			break
		}
		// What was read may have come after the session ended, or after a role was taken away.
		before := version
		if version, err = f.good(ctx); err == nil && version == before {
			return items, next, done, nil
		}
	}
	return nil, after, false, err
}

// Caller is who follows with what they may do now, and the version of roles and bindings by which they may. An error of
// kind errs.Unauthenticated says that the session is not good any more.
func (f *Follower) Caller(ctx context.Context) (model.Caller, events.Position, error) {
	version, err := f.good(ctx)
	if err != nil {
		return model.Caller{}, version, err
	}
	who, err := f.tail.seen(ctx, f.who, version)
	return who, version, err
}

// good is the version of roles and bindings, while the session lets the follower in.
func (f *Follower) good(ctx context.Context) (events.Position, error) {
	good, err := f.tail.sessions.Good(ctx, []model.Session{f.who.Session})
	if err != nil {
		return events.Position{}, err
	}
	version, known := good[f.who.Session]
	if !known {
		return version, errRevoked
	}
	return version, nil
}

// seen is a caller with what they may do at a version of roles and bindings.
func (t *Tail) seen(ctx context.Context, who model.Caller, version events.Position) (model.Caller, error) {
	policy, err := t.policies.Policy(ctx, who.Tenant, version)
	if err == nil {
		who.Rights = policy.RightsOf(who.Identity())
	}
	return who, err
}

var errRevoked = errs.New(errs.Unauthenticated, "the bearer token was revoked or has expired")

// memory is what a tail remembers at one moment.
type memory struct {
	kept     []tailed
	from, to events.Position
}

// behind takes events from memory, if that reaches back to after.
func (m memory) behind(chosen selection, after events.Position, limit int) (
	items []model.StreamedEvent, next events.Position, done, ok bool,
) {
	if m.to.IsZero() || after.Less(m.from) {
		return nil, after, false, false
	}
	first := sort.Search(len(m.kept), func(i int) bool { return after.Less(m.kept[i].item.Position) })
	for _, e := range m.kept[first:] {
		if !chosen.takes(e.event) {
			continue
		}
		if len(items) == limit {
			return items, items[limit-1].Position, false, true
		}
		items = append(items, e.item)
	}
	if after.Less(m.to) {
		after = m.to
	}
	return items, after, true, true
}

// stored reads events from the log, for who begins before what is remembered.
func (t *Tail) stored(ctx context.Context, chosen selection, f model.EventFilter) (
	[]model.StreamedEvent, events.Position, bool, error,
) {
	list, next, done, err := t.reads.list(ctx, chosen, f)
	if err != nil {
		return nil, next, false, err
	}
	items := make([]model.StreamedEvent, 0, len(list))
	for _, e := range list {
		i, err := itemOf(e)
		if err != nil {
			return nil, next, false, err
		}
		items = append(items, i)
	}
	return items, next, done, nil
}

func itemOf(e eventlog.Recorded) (model.StreamedEvent, error) {
	data, err := json.Marshal(answer(e))
	i := model.StreamedEvent{Position: e.Position, Type: e.Type, ID: e.ID, Subject: e.Subject, JSON: data}
	return i, errs.Wrap(errs.Internal, err, "write event %s", e.ID)
}

// Run reads while somebody follows, until ctx ends.
func (t *Tail) Run(ctx context.Context) error {
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for failed := false; ; {
		changed := t.reads.Changed()
		tokens := t.open()
		if len(tokens) == 0 && !t.isHeld() {
			t.forget()
			select {
			case <-t.joined:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		more, err := t.round(ctx, tokens)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !errs.Is(err, errs.Unavailable):
			t.endAll(err) // they come again, and the log of the gateway says why
		}
		if failed && err == nil {
			t.move(func() {}) // those who read by themselves have waited for the database, too
		}
		if failed = err != nil; more && !failed {
			continue
		}
		select {
		case <-changed:
		case <-poll.C:
		case <-t.joined:
		case <-ctx.Done():
			return nil
		}
	}
}

// isHeld says whether anybody but followers wants what is remembered.
func (t *Tail) isHeld() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held > 0
}

// open are the sessions of all followers, each once.
func (t *Tail) open() []model.Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[model.Session]struct{}{}
	for f := range t.followers {
		all[f.who.Session] = struct{}{}
	}
	return slices.Collect(maps.Keys(all))
}

// forget lets go of what is remembered: nobody follows, so that nobody misses it.
func (t *Tail) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept, t.bytes, t.from, t.to = nil, 0, events.Position{}, events.Position{}
}

// round reads what is new, then asks which tokens are good and what their holders may see, and only then hands anything
// out: what comes after a revocation does not reach who was revoked. It costs two queries, however many follow; where
// roles or bindings of a tenant have changed, one more reading of these.
func (t *Tail) round(ctx context.Context, tokens []model.Session) (more bool, err error) {
	began := !t.to.IsZero()
	if !began {
		head, err := t.reads.Log.Head(ctx, t.log)
		if err != nil {
			return false, err
		}
		t.move(func() { t.from, t.to = head, head })
	}
	list, next, err := t.reads.Log.ReadAfter(ctx, t.log, t.to, eventlog.Filter{Raw: true}, tailBatch)
	if err != nil {
		return false, err
	}
	added := make([]tailed, 0, len(list))
	for _, e := range list {
		i, err := itemOf(e)
		if err != nil {
			return false, err
		}
		e.Bytes, e.Data = nil, nil // the JSON has them
		added = append(added, tailed{i, e})
	}
	var good map[model.Session]events.Position
	if len(tokens) > 0 {
		if good, err = t.sessions.Good(ctx, tokens); err != nil {
			return false, err
		}
	}
	rights, err := t.rights(ctx, good)
	if err != nil {
		return false, err
	}
	if len(added) > 0 || len(good) < len(tokens) || t.to.Less(next) {
		t.move(func() {
			t.endRevoked(tokens, good)
			t.see(rights)
			t.add(added, next)
		})
	}
	return len(list) == tailBatch, nil
}

// rights are the callers of followers with what they may see now.
func (t *Tail) rights(
	ctx context.Context, good map[model.Session]events.Position,
) (map[*Follower]model.Caller, error) {
	t.mu.Lock()
	all := slices.Collect(maps.Keys(t.followers))
	t.mu.Unlock()
	out := make(map[*Follower]model.Caller, len(all))
	for _, f := range all {
		version, known := good[f.who.Session]
		if !known { // revoked, or it came meanwhile
			continue
		}
		who, err := t.seen(ctx, f.who, version)
		if err != nil {
			return nil, err
		}
		out[f] = who
	}
	return out, nil
}

// see has followers see what they may see now.
func (t *Tail) see(rights map[*Follower]model.Caller) {
	for f, who := range rights {
		f.chosen = f.chosen.seenBy(who, access.Watch)
	}
}

// move changes what followers see, and wakes them.
func (t *Tail) move(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
	close(t.moved)
	t.moved = make(chan struct{})
}

// add remembers events, and forgets the oldest ones past the bounds. Followers may be reading what was remembered, so
// that it is copied where it gets shorter.
func (t *Tail) add(list []tailed, next events.Position) {
	t.kept = append(t.kept, list...)
	for _, e := range list {
		t.bytes += len(e.item.JSON)
	}
	t.to = next
	if len(t.kept) <= tailEvents && t.bytes <= tailBytes {
		return
	}
	// A quarter goes at once, so that the copying is rare.
	drop := 0
	for len(t.kept)-drop > tailEvents*3/4 || t.bytes > tailBytes*3/4 {
		t.bytes -= len(t.kept[drop].item.JSON)
		t.from = t.kept[drop].item.Position
		drop++
	}
	t.kept = slices.Clone(t.kept[drop:])
}

// endRevoked ends the followers whose tokens were asked about and are not good.
func (t *Tail) endRevoked(asked []model.Session, good map[model.Session]events.Position) {
	refused := map[model.Session]bool{}
	for _, token := range asked {
		_, ok := good[token]
		refused[token] = !ok
	}
	for f := range t.followers {
		if refused[f.who.Session] {
			f.ended = errRevoked
		}
	}
}

func (t *Tail) endAll(err error) {
	t.move(func() {
		for f := range t.followers {
			f.ended = err
		}
	})
}
