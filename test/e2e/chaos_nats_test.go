package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/test/stack"
)

// subjects are the fixed words of what the streams hold.
var subjects = []string{"chandler.evt", protocol.SubjectPlans, protocol.SubjectReport, protocol.SubjectChunks}

// TestFaultsOfNATS harms the bus while portals write. DESIGN D1, D4: it coordinates, and nothing in it is the record.
func TestFaultsOfNATS(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tried([]fault{
		{name: "killed", do: func(w *world) {
			w.Kill("nats-server")
			w.during(20 * time.Second)
			w.must(w.StartNATS(w.ctx))
		}},
		{name: "frozen", do: func(w *world) {
			w.must(w.Suspend("nats-server"))
			w.during(40 * time.Second)
			w.must(w.Continue("nats-server"))
		}},
		{name: "its directory is wiped", do: func(w *world) {
			w.Kill("nats-server")
			dir := filepath.Join(filepath.Dir(filepath.Dir(w.Log("nats-server"))), "nats")
			w.must(os.RemoveAll(dir))
			w.must(os.MkdirAll(dir, 0o755))
			w.must(w.StartNATS(w.ctx))
		}},
		{name: "each stream is deleted", do: func(w *world) {
			w.ofEachStream(func(b *busOf, name string) error { return b.js.DeleteStream(w.ctx, name) })
		}},
		{name: "each stream is purged", do: func(w *world) {
			w.ofEachStream(func(b *busOf, name string) error {
				s, err := b.js.Stream(w.ctx, name)
				if err != nil {
					return err
				}
				return s.Purge(w.ctx)
			})
		}},
		{name: "each stream is emptied message by message", do: func(w *world) {
			w.ofEachStream(func(b *busOf, name string) error { return b.empty(w, name) })
		}},
		{name: "content is garbage", do: (*world).garbageContent},
		{name: "garbage on every subject", do: (*world).garbage},
		{name: "hints of a record that is far ahead", do: (*world).absurdHints},
		{name: "somebody limits the streams until they are full", do: (*world).full},
	})
	if n := w.stops(); n != 0 {
		t.Errorf("effects were stopped %d times: no message on the bus may do that", n)
	}
}

// busOf is a connection that may do everything.
type busOf struct {
	nc *nats.Conn
	js jetstream.JetStream
}

func (w *world) bus() *busOf {
	w.t.Helper()
	nc, err := w.ConnectNATS(stack.Test)
	w.must(err)
	w.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	w.must(err)
	return &busOf{nc: nc, js: js}
}

// stops is how often effects were stopped because the record seemed to have lost commits.
func (w *world) stops() (n int) {
	w.t.Helper()
	w.must(w.record.QueryRow(w.ctx, `select count(*) from eventlog.stops`).Scan(&n))
	return n
}

// ofEachStream harms one stream after the other, with time between for what is under way.
func (w *world) ofEachStream(harm func(*busOf, string) error) {
	w.t.Helper()
	b := w.bus()
	for _, subject := range subjects {
		name, err := b.js.StreamNameBySubject(w.ctx, subject+".>")
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue // lost by the harm before, and not yet there again
		}
		w.must(err)
		if err := harm(b, name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			w.t.Errorf("harm stream %s: %v", name, err)
		}
		w.during(10 * time.Second)
	}
}

// empty deletes the messages of a stream one at a time, which leaves its counters as they are.
func (b *busOf) empty(w *world, name string) error {
	s, err := b.js.Stream(w.ctx, name)
	if err != nil {
		return err
	}
	for seq := s.CachedInfo().State.FirstSeq; seq <= s.CachedInfo().State.LastSeq; seq++ {
		if err := s.DeleteMsg(w.ctx, seq); err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) &&
			!strings.Contains(err.Error(), "no message found") && !strings.Contains(err.Error(), "sequence") {
			return err
		}
	}
	return nil
}

// stream is the one that keeps a subject. It may be missing for a moment, since it is made anew after the harm before.
func (b *busOf) stream(w *world, subject string) (s jetstream.Stream) {
	w.t.Helper()
	w.eventually("there is a stream of "+subject, func() (string, bool) {
		name, err := b.js.StreamNameBySubject(w.ctx, subject+".>")
		if err == nil {
			s, err = b.js.Stream(w.ctx, name)
		}
		return fmt.Sprint(err), err == nil
	})
	return s
}

// kept are the subjects that a stream has messages of.
func (b *busOf) kept(w *world, subject string) []string {
	w.t.Helper()
	info, err := b.stream(w, subject).Info(w.ctx, jetstream.WithSubjectFilter(subject+".>"))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil // it went between the two questions
	}
	w.must(err)
	var all []string
	for subject := range info.State.Subjects {
		all = append(all, subject)
	}
	return all
}

// garbageContent replaces the bundle that a plan needs by garbage, and takes another away, after the hub has published
// both and before the executor can read them.
func (w *world) garbageContent() {
	w.t.Helper()
	b := w.bus()
	s := b.stream(w, protocol.SubjectChunks)
	before := map[string]bool{}
	for _, subject := range b.kept(w, protocol.SubjectChunks) {
		before[subject] = true
	}
	w.addCatalog("garbled", example(w.t))
	w.must(w.cluster.Pause())
	w.group("garbled")
	w.subscribe("garbled", subscription{Name: "buoy", Package: "buoy", Channel: "beta", Catalog: "garbled"})
	var fresh []string
	w.eventually("the bundles of the plan are published", func() (string, bool) {
		fresh = fresh[:0]
		for _, subject := range b.kept(w, protocol.SubjectChunks) {
			if !before[subject] {
				fresh = append(fresh, subject)
			}
		}
		return fmt.Sprint(fresh), len(fresh) >= 2
	})
	for i, subject := range fresh {
		if i%2 == 0 {
			m, err := s.GetLastMsgForSubject(w.ctx, subject)
			w.must(err)
			_, err = b.js.PublishMsg(w.ctx, &nats.Msg{Subject: subject, Header: m.Header, Data: []byte("garbage")})
			w.must(err)
			continue
		}
		w.must(s.Purge(w.ctx, jetstream.WithPurgeSubject(subject)))
	}
	w.must(w.cluster.Resume())
	w.succeeded("garbled", "buoy.v0.9.1")
}

// oversized is just below what nats-server takes.
const oversized = 1<<20 - 1024

// garbage publishes what nobody can read wherever something is read.
func (w *world) garbage() {
	w.t.Helper()
	b := w.bus()
	words := []string{
		"chandler.rpc.resolver.preview", "chandler.rpc.resolver.explain", "chandler.rpc.installer.check",
		"chandler.nothing", "chandler.plans", "chandler.evt.x",
	}
	for _, subject := range subjects {
		words = append(words, b.kept(w, subject)...)
		words = append(words, subject+".a.b.c", subject+".default.x.y", subject+".*.q")
	}
	bodies := [][]byte{
		nil, []byte("garbage"), []byte(`{"scope":{"tenant":"default"},"epoch":9223372036854775807}`),
		[]byte(strings.Repeat("[", 100_000)), make([]byte, oversized),
	}
	for i, subject := range words {
		if strings.Contains(subject, "*") {
			continue
		}
		w.must(b.nc.Publish(subject, bodies[i%len(bodies)]))
		w.must(b.nc.PublishRequest(subject, "chandler.evt.reply", bodies[(i+1)%len(bodies)]))
	}
	w.must(b.nc.Flush())
	w.during(20 * time.Second)
}

// absurdHints say that the record is far ahead of what it is, with the header that hints carry and without. The stream
// may be emptied and filled anew at the same time, after the harm before: what is not there is asked for again.
func (w *world) absurdHints() {
	w.t.Helper()
	b := w.bus()
	const wanted = 5
	var hints []*nats.Msg
	w.eventually("the stream keeps hints to say the wrong thing with", func() (string, bool) {
		hints = hints[:0]
		s := b.stream(w, "chandler.evt")
		for _, subject := range b.kept(w, "chandler.evt") {
			m, err := s.GetLastMsgForSubject(w.ctx, subject)
			if err != nil {
				return fmt.Sprintf("%s: %v", subject, err), false
			}
			if hints = append(hints, absurd(m)); len(hints) == wanted {
				break
			}
		}
		return fmt.Sprintf("%d hints", len(hints)), len(hints) > 0
	})
	for _, hint := range hints {
		if _, err := b.js.PublishMsg(w.ctx, hint); err != nil {
			w.t.Logf("the stream refuses the hint: %v", err)
		}
		w.must(b.nc.PublishMsg(hint))
	}
	w.during(20 * time.Second)
}

// absurd is a hint like another, of an event that is far ahead.
func absurd(m *jetstream.RawStreamMsg) *nats.Msg {
	header := nats.Header{}
	for key, values := range m.Header {
		if key == nats.ExpectedLastSeqHdr || key == nats.ExpectedLastMsgIdHdr {
			continue
		}
		header[key] = values
	}
	header.Set(nats.MsgIdHdr, "9-999999999")
	ahead := strings.NewReplacer(`"sequence":"`, `"sequence":"9`, `"sequence":`, `"sequence":9`)
	return &nats.Msg{Subject: m.Subject, Header: header, Data: []byte(ahead.Replace(string(m.Data)))}
}

// full gives the streams limits, as an administrator of NATS may, so that they take nothing more, and takes them away
// after a while.
func (w *world) full() {
	w.t.Helper()
	b := w.bus()
	before := map[string]jetstream.StreamConfig{}
	for _, subject := range subjects {
		s := b.stream(w, subject)
		name := s.CachedInfo().Config.Name
		before[name] = s.CachedInfo().Config
		limited := before[name]
		limited.Discard, limited.MaxMsgs, limited.MaxBytes = jetstream.DiscardNew, 1, 1<<10
		if _, err := b.js.UpdateStream(w.ctx, limited); err != nil {
			w.t.Logf("%s is not limited: %v", name, err)
		}
	}
	w.during(30 * time.Second)
	for name, cfg := range before {
		if _, err := b.js.UpdateStream(w.ctx, cfg); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			w.t.Errorf("take the limits of %s away: %v", name, err)
		}
	}
}
