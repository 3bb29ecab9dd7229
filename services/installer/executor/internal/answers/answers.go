// Package answers bounds what the API server of a cluster answers: in bytes before and after decompression, in time,
// and in
// how much of it is read at once. It follows no redirect.
package answers

import (
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// What an API server may answer. A cluster is somebody else's: what it answers may be made to be large, slow or
// endless,
// and the process that reads it reads those of others, too.
const (
	// Small bounds what is a line or a short text: the version, health, a refusal, a redirect.
	Small = 1 << 20
	// One bounds one object: etcd takes 1.5 MiB as it comes, and JSON with managed fields is some times that.
	One = 16 << 20
	// List bounds a list, and what a server says that it serves: a thousand large definitions have 100 MiB.
	List = 192 << 20
	// eventAnswer bounds one event of a watch, which holds one object.
	eventAnswer = One
	// openAnswers bounds what answers of one cluster hold together that are being read: a list of the largest, and half
	// of another one.
	openAnswers = 288 << 20
	// maxRatio is how much larger than its compressed form an answer may be, past its first mebibyte. Lists of objects
	// that are all alike come to 1:100; what gzip makes of zeros is 1:1,030.
	maxRatio = 300
	// parallelAnswers bounds requests of one cluster that are under way, watches aside: 32 workers with a few each.
	parallelAnswers = 256
	// MaxHeader bounds the header of an answer; API servers send one or two KiB.
	MaxHeader = 256 << 10
	// answerTime bounds a whole answer, its last byte included, however slowly it comes. What the caller allows is
	// shorter for all but lists of kinds that are watched.
	answerTime = 2 * time.Minute
	// watchTime bounds a watch that does not say how long it is to be; client-go asks for 5 to 10 minutes.
	watchTime = time.Hour
	// watchSlack is what a watch may take past what it asked for.
	watchSlack = time.Minute
	// eventTime bounds the time from the first to the last byte of an event.
	eventTime = time.Minute
)

// Transport bounds what one cluster answers. It is the innermost transport: what is around it is trusted.
type Transport struct {
	Answer time.Duration // for a whole answer
	Event  time.Duration // for an event of a watch
	next   http.RoundTripper
	turns  chan struct{}
	open   atomic.Int64 // bytes of answers that are being read
}

// New returns a transport with the standard bounds.
func New(next http.RoundTripper) *Transport {
	return &Transport{
		next: next, turns: make(chan struct{}, parallelAnswers), Answer: answerTime, Event: eventTime,
	}
}

// Held is how many bytes of answers that are being read are in memory.
func (a *Transport) Held() int64 { return a.open.Load() }

// Most is how many bytes may come for a request, or one event of a watch.
func (a *Transport) Most(req *http.Request) int64 { return a.kindOf(req).most }

// RoundTrip implements http.RoundTripper.
func (a *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	kind := a.kindOf(req)
	ctx, cancel := context.WithTimeout(req.Context(), kind.within)
	free := func() {}
	if !kind.watch {
		select {
		case a.turns <- struct{}{}:
			free = func() { <-a.turns }
		case <-ctx.Done():
			cancel()
			return nil, ctx.Err()
		}
	}
	end := sync.OnceFunc(func() {
		cancel()
		free()
	})
	req = req.Clone(ctx)
	if !kind.watch && req.Header.Get("Range") == "" && req.Method != http.MethodHead {
		req.Header.Set("Accept-Encoding", "gzip") // the transport does not, and so does not decompress without a bound
	}
	resp, err := a.next.RoundTrip(req)
	if err != nil {
		end()
		return nil, err
	}
	if err := a.bound(ctx, resp, kind, end); err != nil {
		_ = resp.Body.Close() // nothing more is read of it
		end()
		return nil, err
	}
	return resp, nil
}

// WrappedRoundTripper lets client-go find the transport, to close connections that are idle.
func (a *Transport) WrappedRoundTripper() http.RoundTripper { return a.next }

// answerKind is what may come.
type answerKind struct {
	watch  bool
	most   int64         // bytes; of an event where it is a watch
	within time.Duration // for all of it
	what   string
}

func (a *Transport) kindOf(req *http.Request) answerKind {
	q := req.URL.Query()
	if w := q.Get("watch"); w == "true" || w == "1" {
		within := watchTime
		if s, err := strconv.Atoi(q.Get("timeoutSeconds")); err == nil && s > 0 && s < int(watchTime/time.Second) {
			within = time.Duration(s)*time.Second + watchSlack
		}
		return answerKind{watch: true, most: eventAnswer, within: within, what: "an event of a watch"}
	}
	k := answerKind{most: One, within: a.Answer, what: "an object"}
	// /api/v1/…, /apis/GROUP/VERSION/…, with namespaces/NAME in between.
	p := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	if i := slices.IndexFunc(p, isRoot); i > 0 { // some servers have a path of their own before it
		p = p[i:]
	}
	switch {
	case p[0] == "version", p[0] == "healthz", p[0] == "livez", p[0] == "readyz":
		k.most, k.what = Small, "what a server says of itself"
	case p[0] == "openapi":
		k.most, k.what = List, "what a server says that it serves"
	case req.Method != http.MethodGet && req.Method != http.MethodDelete:
	default:
		if n := pastGroup(p); len(n) == 0 || len(n) == 1 || len(n) == 3 && n[0] == "namespaces" {
			k.most, k.what = List, "a list"
		}
	}
	return k
}

func isRoot(segment string) bool {
	return slices.Contains([]string{"api", "apis", "version", "openapi", "healthz", "livez", "readyz"}, segment)
}

// pastGroup is the path below /api/VERSION and /apis/GROUP/VERSION.
func pastGroup(p []string) []string {
	above := 2
	if p[0] == "apis" {
		above = 3
	}
	return p[min(above, len(p)):]
}

// bound puts the bounds on an answer. end is called when nothing more of it is to come.
func (a *Transport) bound(ctx context.Context, resp *http.Response, k answerKind, end func()) error {
	if resp.StatusCode >= 300 && resp.StatusCode < 400 && resp.StatusCode != http.StatusNotModified {
		// The credential is added to every request, wherever it is sent on to.
		return errs.New(errs.Forbidden, "the API server sends on to another address (status %d): that is not followed",
			resp.StatusCode)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		k = answerKind{most: Small, what: "a refusal"}
	}
	wire := &body{from: resp.Body, end: end, of: a, most: k.most, what: k.what, cause: ctx}
	if k.watch {
		wire.events = &eventBound{framed: framed(resp), most: k.most}
		wire.stall = cutter(a.Event, end)
	}
	resp.Body = wire
	switch encoding := resp.Header.Get("Content-Encoding"); {
	case encoding == "" || encoding == "identity":
		return nil
	case encoding != "gzip" || k.watch:
		return errs.New(errs.Invalid, "the API server answers in encoding %.20q, which nobody asked for", encoding)
	}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength, resp.Uncompressed = -1, true
	resp.Body = &unpacked{wire: wire}
	return nil
}

// framed reports whether the events of a watch come with their lengths before them, as protobuf does.
func framed(resp *http.Response) bool {
	return strings.HasPrefix(resp.Header.Get("Content-Type"), "application/vnd.kubernetes.protobuf")
}

// body counts the bytes of an answer as they come from the connection.
type body struct {
	from   io.ReadCloser
	end    func()
	of     *Transport
	most   int64
	what   string
	cause  context.Context //nolint:containedctx // why a read ended
	read   int64
	held   int64 // of of.open
	events *eventBound
	stall  *time.Timer
	once   sync.Once
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if b.events != nil {
		if far := b.events.take(p[:n]); far != nil {
			return 0, b.tooLarge()
		}
		b.timed(n)
		return n, b.explain(err)
	}
	b.read += int64(n)
	if b.read > b.most {
		return 0, b.tooLarge()
	}
	if err := b.hold(int64(n)); err != nil {
		return 0, err
	}
	return n, b.explain(err)
}

func (b *body) tooLarge() error {
	return errs.New(errs.TooLarge, "the API server answers with more than %d bytes, the bound of %s", b.most, b.what)
}

// explain says that it was the deadline, where the transport says that the request was canceled.
func (b *body) explain(err error) error {
	if err != nil && !errors.Is(err, io.EOF) && errors.Is(b.cause.Err(), context.DeadlineExceeded) {
		return b.cause.Err()
	}
	return err
}

// hold counts bytes among those that are in memory because of this cluster.
func (b *body) hold(n int64) error {
	b.held += n
	if b.of.open.Add(n) > openAnswers {
		return errs.New(errs.TooLarge,
			"answers of the API server that are being read hold more than %d bytes together", int64(openAnswers))
	}
	return nil
}

// timed cuts off an event that does not end. A watch between events may be silent.
func (b *body) timed(n int) {
	switch {
	case n == 0:
	case b.events.within():
		if !b.events.running {
			b.events.running = true
			b.stall.Reset(b.of.Event)
		}
	default:
		b.events.running = false
		b.stall.Stop()
	}
}

// cutter calls cut after a time once it was reset; it is stopped to begin with.
func cutter(after time.Duration, cut func()) *time.Timer {
	t := time.AfterFunc(after, cut)
	t.Stop()
	return t
}

// Close implements io.Closer.
func (b *body) Close() error {
	err := b.from.Close()
	b.once.Do(func() {
		if b.stall != nil {
			b.stall.Stop()
		}
		b.of.open.Add(-b.held)
		b.end()
	})
	return err
}

// unpacked decompresses an answer, and bounds what comes of it as well.
type unpacked struct {
	wire *body
	gz   *gzip.Reader
	read int64
}

// Read implements io.Reader.
func (u *unpacked) Read(p []byte) (int, error) {
	if u.gz == nil {
		gz, err := gzip.NewReader(u.wire)
		if err != nil {
			return 0, err
		}
		u.gz = gz
	}
	n, err := u.gz.Read(p)
	u.read += int64(n)
	switch {
	case u.read > u.wire.most:
		return 0, u.wire.tooLarge()
	case u.read > Small && u.read > maxRatio*u.wire.read:
		return 0, errs.New(errs.TooLarge,
			"the API server answers with %d bytes that become more than %d times as many: that is no list of objects",
			u.wire.read, maxRatio)
	}
	if err := u.wire.hold(int64(n)); err != nil {
		return 0, err
	}
	return n, err
}

// Close implements io.Closer.
func (u *unpacked) Close() error { return u.wire.Close() }

var errLongEvent = errors.New("an event is too long")

// eventBound finds where events of a watch begin and end: JSON values one after the other, or frames of bytes that have
// their length before them. client-go reads a whole event into memory before it looks at it, without a bound where the
// server chooses JSON.
type eventBound struct {
	framed  bool
	most    int64
	running bool // a timer runs for the event

	size         int64 // of the event so far
	depth        int64
	quoted, skip bool

	header []byte // of a frame, as far as it is there
	left   int64  // of a frame
}

// within reports whether an event has begun and not ended.
func (e *eventBound) within() bool { return e.size > 0 || len(e.header) > 0 || e.left > 0 }

func (e *eventBound) take(p []byte) error {
	if e.framed {
		return e.frames(p)
	}
	for _, c := range p {
		if e.size == 0 && (c == '\n' || c == ' ' || c == '\r' || c == '\t') {
			continue
		}
		e.size++
		if e.size > e.most {
			return errLongEvent
		}
		switch {
		case e.skip:
			e.skip = false
		case e.quoted:
			e.skip, e.quoted = c == '\\', c != '"'
		case c == '"':
			e.quoted = true
		case c == '{' || c == '[':
			e.depth++
		case c == '}' || c == ']':
			e.depth--
			if e.depth <= 0 {
				e.size, e.depth = 0, 0
			}
		}
	}
	return nil
}

// lengthBytes is how long the length of a frame is.
const lengthBytes = 4

func (e *eventBound) frames(p []byte) error {
	for len(p) > 0 {
		if e.left > 0 {
			n := min(e.left, int64(len(p)))
			e.left -= n
			p = p[n:]
			continue
		}
		n := min(lengthBytes-len(e.header), len(p))
		e.header = append(e.header, p[:n]...)
		p = p[n:]
		if len(e.header) < lengthBytes {
			return nil
		}
		e.left = int64(binary.BigEndian.Uint32(e.header))
		e.header = e.header[:0]
		if e.left > e.most {
			return errLongEvent
		}
	}
	return nil
}
