package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

const (
	// maxUnacked is after how many publishes in a row without an acknowledgement this is said: a server may be
	// slow once or twice.
	maxUnacked = 3
	// nearlyFull is the part of a stream's bytes, in percent, from which on it is said to be full: one message has at
	// most 1 MiB, and streams have many.
	nearlyFull = 95
)

// streamStates is what is known of the streams, by kind, for readiness and people.
type streamStates struct {
	mu *sync.Mutex
	// there are names of streams that were there.
	there map[string]bool
	// unusable is why a stream could not be made or used when it was looked at, refused why it took no message, limits
	// what somebody else bounded in it.
	unusable, refused, limits map[string]string
	// silent counts publishes in a row without an answer.
	silent map[string]int
}

func newStreamStates() streamStates {
	return streamStates{
		mu: &sync.Mutex{}, there: map[string]bool{}, unusable: map[string]string{}, refused: map[string]string{},
		limits: map[string]string{}, silent: map[string]int{},
	}
}

// seen notes that a stream is there.
func (s *streamStates) seen(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.there[name] = true
}

// forget reports whether a stream was there, and forgets it.
func (s *streamStates) forget(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.there[name]
	delete(s.there, name)
	return was
}

// found notes what came of a look at a stream.
func (s *streamStates) found(kind string, info *jetstream.StreamInfo, keeper *StreamSettings, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	put(s.unusable, kind, fmtErr(err))
	if err != nil || info == nil {
		return
	}
	put(s.limits, kind, foreignLimits(info.Config, kind, keeper))
	if full(info) {
		s.unusable[kind] = fmt.Sprintf("stream %s is full: %d of %d bytes; it goes on when there is room (settings of "+
			"streams, maxBytes)", info.Config.Name, info.State.Bytes, info.Config.MaxBytes)
	}
}

// full reports whether a stream refuses what is new, or soon will.
func full(info *jetstream.StreamInfo) bool {
	most := info.Config.MaxBytes
	return info.Config.Discard == jetstream.DiscardNew && most > 0 && info.State.Bytes*100 >= uint64(most)*nearlyFull
}

func put(m map[string]string, key, value string) {
	if value == "" {
		delete(m, key)
		return
	}
	m[key] = value
}

// foreignLimits says what somebody bounded in a stream that Chandler does not bound.
func foreignLimits(c jetstream.StreamConfig, kind string, keeper *StreamSettings) string {
	ours := chosen{}
	if keeper != nil {
		ours = keeper.of(kind)
	}
	var set []string
	note := func(name string, is, own int64) {
		if is > 0 && is != own {
			set = append(set, fmt.Sprintf("%s %d", name, is))
		}
	}
	messages := int64(0)
	if kind == protocol.StreamEvents {
		messages = HintsKept
	}
	note("max_msgs", c.MaxMsgs, messages)
	note("max_bytes", c.MaxBytes, ours.MaxBytes)
	note("max_age", int64(c.MaxAge.Seconds()), int64(ours.MaxAge.Seconds()))
	note("max_msg_size", int64(c.MaxMsgSize), 0)
	if c.Sealed {
		set = append(set, "sealed")
	}
	if len(set) == 0 {
		return ""
	}
	return fmt.Sprintf("stream %s has bounds that Chandler did not set: %s; what does not fit waits", c.Name,
		strings.Join(set, ", "))
}

// Published counts the results of publishes into a stream, and returns err. A stream that repeatedly acknowledges
// nothing, or refuses, is said to (CheckStreams); it is left as it is, since it may merely be slow: a person decides
// whether it is made anew (chandler bus rebuild --replace).
func (b *Bus) Published(kind string, err error) error {
	s := &b.streams
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.refused[kind]
	switch api, refused := errors.AsType[*jetstream.APIError](err); {
	case err == nil:
		s.silent[kind] = 0
		delete(s.refused, kind)
	case refused && isOrder(api.ErrorCode):
	case refused:
		s.refused[kind] = fmt.Sprintf("stream %s refuses messages: %s", b.StreamName(kind), api.Description)
	case errors.Is(err, context.DeadlineExceeded) && b.conn.IsConnected():
		s.silent[kind]++
		if s.silent[kind] >= maxUnacked {
			s.refused[kind] = fmt.Sprintf("stream %s acknowledges nothing: NATS is slow, or its disk is full, or it does not "+
				"allow this user to publish there, or has lost the stream's files. If it stays so, make room and restart "+
				"NATS, or make the stream anew: chandler bus rebuild --replace %s", b.StreamName(kind), b.StreamName(kind))
		}
	}
	if now := s.refused[kind]; now != before {
		if now == "" {
			b.log.Info("a stream takes messages again", "stream", b.StreamName(kind))
		} else {
			b.log.Error("a stream takes no messages", "error", now)
		}
	}
	return err
}

// isOrder reports whether a message was refused because another one came before it: nothing is wrong with the stream.
func isOrder(code jetstream.ErrorCode) bool {
	const wrongLastID, wrongLastSequence, wrongLastSequenceConstant = 10070, 10071, 10164
	return code == wrongLastID || code == wrongLastSequence || code == wrongLastSequenceConstant
}

// CheckStreams is nil while every stream can be used; for readiness. It asks nobody: Ensure and Published note what
// they find.
func (b *Bus) CheckStreams(context.Context) error {
	if text := b.streams.text(b.streams.unusable, b.streams.refused); text != "" {
		return errs.New(errs.Unavailable, "%s", text)
	}
	return nil
}

// NoteStreams says what somebody bounded in a stream that Chandler does not bound; "" for nothing.
func (b *Bus) NoteStreams(context.Context) string { return b.streams.text(b.streams.limits) }

func (s *streamStates) text(noted ...map[string]string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for _, m := range noted {
		for _, kind := range slices.Sorted(maps.Keys(m)) {
			lines = append(lines, m[kind])
		}
	}
	return strings.Join(lines, "; ")
}
