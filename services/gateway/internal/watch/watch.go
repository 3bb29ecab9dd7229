// Package watch follows a list: what is in it, then what changes in it, as Server-Sent Events (ADR 0062).
//
// It knows no rows and no filters. What it compares are pages of the same list, read with the rights that the caller
// has at that moment; events of the log only tell which part of the list to read again, and when. What it remembers of
// an object is a hash.
//
//	ADDED, MODIFIED   data is the object, as the list has it
//	DELETED           data is the name of an object that the list has no longer
//	RESET             data is {}: forget the list, what there is follows as ADDED
//	BOOKMARK          id is a position of the log: everything that happened up to it was told
//	ERROR             data says why the stream ends for good
package watch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const (
	// eventBatch is how many events are taken at a time; most of them are passed over.
	eventBatch = 1000
	// oldest is how long a change that no event tells, such as a condition that comes with time, stays unseen; at least
	// ageShare times what it takes to compare everything, so that streams that only wait take 2 % of a connection.
	oldest   = time.Minute
	ageShare = 60
	// paceShare is after how many times what it takes everything may be compared again because of an event that
	// concerns all of it: catalogs that change all the time take a tenth of a connection.
	paceShare = 10
	// partShare is after how many times what a part took the next one may be compared: a client has a part that
	// changes all the time take a fifth of a connection. What comes meanwhile is compared together.
	partShare = 4
	// retryAfter is when something is tried again that is away.
	retryAfter = time.Second
)

// change is what becomes of an object.
type change string

const (
	added    change = "ADDED"
	modified change = "MODIFIED"
	deleted  change = "DELETED"
	reset    change = "RESET"
	bookmark change = "BOOKMARK"
	failed   change = "ERROR"
)

// ErrEnd is joined to an error that ends a stream although it is errs.Unavailable; the client comes again.
var ErrEnd = errors.New("the stream ends")

// Log is the end of the log for one follower, who gets every event of its tenant.
type Log interface {
	// Next returns events behind a position, where to go on, and whether that is the end for now.
	Next(ctx context.Context, after events.Position, limit int) ([]model.StreamedEvent, events.Position, bool, error)
	// Moved is closed when there may be something new; it is taken before Next.
	Moved() <-chan struct{}
	// Caller is who follows with what they may do now, and the version of their rights.
	Caller(ctx context.Context) (model.Caller, events.Position, error)
}

// Object is one object of a list.
type Object struct {
	In   Scope
	Name Name
	JSON []byte
}

// List is what is watched.
type List struct {
	// Kinds are those of the events that may change an object of the list, or whether it is in it.
	Kinds []events.Kind
	// Undivided says that Page reads everything, whatever the scope.
	Undivided bool
	// Covers says whether the list can have anything of a part; nil is always.
	Covers func(part Scope) bool
	// Page reads objects of a scope as somebody sees them, from a cursor; next is "" on the last page.
	Page func(ctx context.Context, who model.Caller, in Scope, cursor string) (page []Object, next string, err error)
	// Allowed is nil while somebody may read the list at all.
	Allowed func(ctx context.Context, who model.Caller) error
}

// Deps are what a stream is made of.
type Deps struct {
	List List
	Log  Log
	// Hold returns when the list shows a position; errs.Unavailable where that takes too long.
	Hold func(ctx context.Context, at events.Position) error
	// Write sends text to the client, or fails for one that does not take it.
	Write func(text []byte) error
	// Heartbeat is how often something is sent; Life is how long a stream lasts.
	Heartbeat, Life time.Duration
	// Room is shared by all streams of the process; Identity is whose share of it is taken.
	Room     *Room
	Identity string
	// Take takes one of the lists that the identity may ask for, for a page; false with how long to wait where there is
	// none. The first page is that of the request, which was counted. nil counts nothing.
	Take func() (wait time.Duration, ok bool)
}

// nul is in no name: PostgreSQL holds no text with it.
const nul = "\x00"

// keyOf is an object in what is remembered: one text in place of a map for each namespace, which for one object would
// cost some hundred bytes.
func keyOf(o Object) string {
	n := o.Name
	return strings.Join([]string{o.In.Cluster, o.In.Namespace, n.ID, n.Cluster, n.Namespace, n.Name}, nul)
}

// nameOf is the name in a key.
func nameOf(key string) Name {
	f := strings.Split(key, nul)
	return Name{ID: f[2], Cluster: f[3], Namespace: f[4], Name: f[5]}
}

// prefix is what the keys of objects in a scope begin with.
func (s Scope) prefix() string {
	switch {
	case s == everything:
		return ""
	case s.Namespace == "":
		return s.Cluster + nul
	}
	return s.Cluster + nul + s.Namespace + nul
}

// entry is what is remembered of an object.
type entry struct {
	hash  [8]byte // the beginning of SHA-256: an object that changes unseen is one in 2^64
	round uint32  // of the comparison that saw it last
}

// Stream is one list that is watched. Its methods are for one goroutine.
type Stream struct {
	Deps

	who     model.Caller
	version events.Position // of their rights
	at      events.Position // up to here events were taken
	told    events.Position // up to here everything was told
	marked  events.Position // of the last BOOKMARK
	due     due
	rights  bool             // may have changed
	seen    map[string]entry // by keyOf; each has taken room
	round   uint32
	// ended and took are of the last comparison of everything.
	ended time.Time
	took  time.Duration
	// idle is how long the comparison at hand waited for its turn; rested is when a part may be compared again.
	idle   time.Duration
	rested time.Time
	wrote  bool // since the last BOOKMARK
	again  bool // the client has something of an earlier stream
	// first is a page that was read before the stream began, so that a list that refuses does it with a status.
	first *page
}

type page struct {
	objects []Object
	next    string
}

// Open prepares a stream, while an error can still be an answer. head is where the log ends; again says that the client
// goes on after an earlier stream, of which it may have what is gone by now.
func Open(ctx context.Context, d Deps, head events.Position, again bool) (*Stream, error) {
	s := &Stream{Deps: d, at: head, again: again, seen: map[string]entry{}}
	var err error
	if s.who, s.version, err = d.Log.Caller(ctx); err != nil {
		return nil, err
	}
	if err := s.hold(ctx); err != nil {
		return nil, err
	}
	objects, next, err := d.List.Page(ctx, s.who, everything, "")
	if err != nil {
		return nil, err
	}
	// Whether there is room for more than a page is found out on the way.
	if err := d.Room.take(d.Identity, len(objects)); err != nil {
		return nil, err
	}
	d.Room.give(d.Identity, len(objects))
	s.first = &page{objects, next}
	return s, nil
}

// hold waits longer than streams that are open: nothing was sent yet, and an answer is better than a refusal.
func (s *Stream) hold(ctx context.Context) error {
	for {
		err := s.Hold(ctx, s.at)
		if err == nil || !errs.Is(err, errs.Unavailable) {
			return err
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return err
		}
	}
}

// Run sends until the client goes, the server stops, the rights end or the stream has lived long enough.
func (s *Stream) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.Life)
	defer cancel()
	defer func() { s.Room.give(s.Identity, len(s.seen)) }()
	err := s.run(ctx)
	if ctx.Err() != nil || errors.Is(err, errGone) {
		return nil // a good end: the client goes on with the last id
	}
	return err
}

// errGone is a client that takes nothing more.
var errGone = errors.New("the client reads no more")

func (s *Stream) run(ctx context.Context) error {
	if err := s.send([]byte("retry: 1000\n\n")); err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	beat := time.NewTicker(s.Heartbeat)
	defer beat.Stop()
	wake := time.NewTimer(s.Heartbeat)
	defer wake.Stop()
	for {
		moved := s.Log.Moved()
		more, err := s.take(ctx)
		if err == nil && !more {
			err = s.settle(ctx)
		}
		away := isAway(err)
		if err != nil && !away || ctx.Err() != nil {
			return err
		}
		if more && !away || errors.Is(err, errRights) {
			continue
		}
		wake.Reset(s.sleep(time.Now(), away))
		select {
		case <-moved:
		case <-wake.C:
		case <-beat.C:
			if err := s.heartbeat(); err != nil {
				return err
			}
		case <-httpserver.Draining(ctx):
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// begin tells what there is. To a client that goes on it tells all of it, too: what it missed cannot be told apart from
// what changes while this is read, and some of it no event tells.
func (s *Stream) begin(ctx context.Context) error {
	if s.again {
		if err := s.reset(); err != nil {
			return err
		}
	}
	for {
		err := s.compare(ctx, everything)
		switch {
		case err == nil:
			s.due, s.told = due{}, s.at
			return s.mark()
		case errors.Is(err, errRights): // what was told and may not be seen any more is told as deleted
		case !isAway(err):
			return err
		default:
			select {
			case <-time.After(retryAfter):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// isAway says that something does not answer for now: the stream waits for it.
func isAway(err error) bool { return errs.Is(err, errs.Unavailable) && !errors.Is(err, ErrEnd) }

// take takes the next events and notes what they touch.
func (s *Stream) take(ctx context.Context) (more bool, err error) {
	list, next, done, err := s.Log.Next(ctx, s.at, eventBatch)
	if err != nil {
		return false, err
	}
	for _, e := range list {
		if part, ok := touched(e, s.List.Kinds); ok {
			s.touch(part)
		}
		s.rights = s.rights || changesRights(e)
	}
	s.at = next
	return !done, nil
}

// touch notes that a part is due, if the list has any of it.
func (s *Stream) touch(part Scope) {
	switch {
	case s.List.Covers != nil && part != everything && !s.List.Covers(part):
	case s.List.Undivided:
		s.due.add(everything)
	default:
		s.due.add(part)
	}
}

// settle compares what is due, and tells how far everything is told.
func (s *Stream) settle(ctx context.Context) error {
	if s.rights || !s.due.empty() {
		if err := s.Hold(ctx, s.at); err != nil {
			return err
		}
	}
	if s.rights {
		if err := s.see(ctx); err != nil && !errors.Is(err, errRights) {
			return err
		}
		s.rights = false
	}
	for len(s.due.parts) > 0 && !s.due.now && !time.Now().Before(s.rested) {
		if err := s.compare(ctx, s.due.parts[0]); err != nil {
			return err
		}
		s.due.parts = s.due.parts[1:]
	}
	if now := time.Now(); s.due.whole && (s.due.now || !now.Before(s.paced())) || !now.Before(s.aged()) {
		was := s.due.now
		s.due = due{}
		if err := s.compare(ctx, everything); err != nil {
			s.due.whole, s.due.now = true, s.due.now || was
			return err
		}
	}
	if s.due.empty() {
		s.told = s.at
	}
	if s.wrote {
		return s.mark()
	}
	return nil
}

// paced is when everything may be compared because of an event, aged when it is without one.
func (s *Stream) paced() time.Time { return s.ended.Add(paceShare * s.took) }
func (s *Stream) aged() time.Time  { return s.ended.Add(max(oldest, ageShare*s.took)) }

// sleep is how long nothing is to be done.
func (s *Stream) sleep(now time.Time, away bool) time.Duration {
	switch {
	case away:
		return retryAfter
	case len(s.due.parts) > 0: // all of it, if that comes first, is looked at then, too
		return s.rested.Sub(now)
	case s.due.whole:
		return s.paced().Sub(now)
	default:
		return s.aged().Sub(now)
	}
}

// errRights says that what was read may not be shown, since rights have changed: everything is due.
var errRights = errs.New(errs.Unavailable, "rights have changed")

// see asks what the caller may do now. Where that is not what it was, everything is to be compared at once (errRights),
// and who may not read the list any more gets nothing more.
func (s *Stream) see(ctx context.Context) error {
	who, version, err := s.Log.Caller(ctx)
	if err != nil || version == s.version {
		return err
	}
	s.who, s.version = who, version
	if err := s.List.Allowed(ctx, who); err != nil {
		return err
	}
	s.due.whole, s.due.now = true, true
	return errRights
}

// compare reads a part of the list and tells what is not as it was seen last.
func (s *Stream) compare(ctx context.Context, in Scope) error {
	began := time.Now()
	s.idle = 0
	s.round++
	for cursor := ""; ; {
		p, err := s.page(ctx, in, cursor)
		if err != nil {
			return err
		}
		// What was read may have come after rights were taken away.
		if err := s.see(ctx); err != nil {
			return err
		}
		if err := s.tell(p.objects); err != nil {
			return err
		}
		if cursor = p.next; cursor == "" {
			break
		}
	}
	if err := s.drop(in); err != nil {
		return err
	}
	now := time.Now()
	if in == everything {
		s.ended, s.took = now, now.Sub(began)-s.idle
	} else {
		s.rested = now.Add(partShare * (now.Sub(began) - s.idle))
	}
	return nil
}

// turn waits until a page may be read. Other streams of the identity wait for the same, so that one of them may come
// late: its connection is kept alive.
func (s *Stream) turn(ctx context.Context) error {
	if s.Take == nil {
		return nil
	}
	began := time.Now()
	for said := began; ; {
		wait, ok := s.Take()
		if ok {
			s.idle += time.Since(began)
			return nil
		}
		select {
		case <-time.After(min(wait, retryAfter)):
		case <-httpserver.Draining(ctx):
			return errGone
		case <-ctx.Done():
			return ctx.Err()
		}
		if time.Since(said) < s.Heartbeat {
			continue
		}
		if err := s.send([]byte(": heartbeat\n\n")); err != nil {
			return err
		}
		said = time.Now()
	}
}

func (s *Stream) page(ctx context.Context, in Scope, cursor string) (page, error) {
	if p := s.first; p != nil {
		s.first = nil
		return *p, nil
	}
	if err := s.turn(ctx); err != nil {
		return page{}, err
	}
	objects, next, err := s.List.Page(ctx, s.who, in, cursor)
	return page{objects, next}, err
}

// tell tells what is new or other than it was.
func (s *Stream) tell(objects []Object) error {
	var out bytes.Buffer
	for _, o := range objects {
		sum := sha256.Sum256(o.JSON)
		now := entry{round: s.round}
		copy(now.hash[:], sum[:])
		key := keyOf(o)
		before, known := s.seen[key]
		if !known {
			if err := s.Room.take(s.Identity, 1); err != nil {
				return errors.Join(s.fail(err), err)
			}
		}
		s.seen[key] = now
		switch {
		case known && before.hash == now.hash:
		case known:
			write(&out, modified, o.JSON)
		default:
			write(&out, added, o.JSON)
		}
	}
	return s.flush(&out)
}

// drop tells of what is gone from a part that was read to its end.
func (s *Stream) drop(in Scope) error {
	var out bytes.Buffer
	for key, e := range s.seen {
		if e.round == s.round || !strings.HasPrefix(key, in.prefix()) {
			continue
		}
		delete(s.seen, key)
		s.Room.give(s.Identity, 1)
		data, err := json.Marshal(nameOf(key))
		if err != nil {
			return errs.Wrap(errs.Internal, err, "write the name of an object")
		}
		write(&out, deleted, data)
	}
	return s.flush(&out)
}

// fail tells why the stream ends for good.
func (s *Stream) fail(why error) error {
	data, err := json.Marshal(map[string]string{"detail": why.Error()})
	if err != nil {
		return errs.Wrap(errs.Internal, err, "write why a stream ends")
	}
	var out bytes.Buffer
	write(&out, failed, data)
	return s.send(out.Bytes())
}

// mark tells how far everything is told.
func (s *Stream) mark() error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "id: %s\n", s.told)
	write(&out, bookmark, fmt.Appendf(nil, `{"position":%q}`, s.told))
	s.marked, s.wrote = s.told, false
	return s.send(out.Bytes())
}

// heartbeat keeps a connection alive. The position goes along where it moved, so that a client whose list changes
// rarely resumes near the end.
func (s *Stream) heartbeat() error {
	if s.marked.Less(s.told) {
		return s.mark()
	}
	return s.send([]byte(": heartbeat\n\n"))
}

// reset has the client forget the list.
func (s *Stream) reset() error {
	var out bytes.Buffer
	write(&out, reset, []byte("{}"))
	return s.flush(&out)
}

func (s *Stream) flush(out *bytes.Buffer) error {
	if out.Len() == 0 {
		return nil
	}
	s.wrote = true
	return s.send(out.Bytes())
}

func (s *Stream) send(text []byte) error {
	if err := s.Write(text); err != nil {
		return errors.Join(errGone, err)
	}
	return nil
}

// write writes one message; data is one line.
func write(out *bytes.Buffer, c change, data []byte) {
	fmt.Fprintf(out, "event: %s\ndata: %s\n\n", c, data)
}
