package bus

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// StreamEvents is the stream of hints; SubjectEvents the fixed words of its subjects:
// chandler.evt.<tenant>.<kind>.<stream uuid>.
const (
	StreamEvents  = "EVENTS"
	SubjectEvents = "chandler.evt"
)

// HintsKept bounds EVENTS. A hint is disposable; these are kept so that people and tools that read the
// stream find the recent past. At about 1 KB a hint the stream stays near 256 MB.
const HintsKept = 1 << 18

// dedupeWindow is the least that the server takes. Order and uniqueness come from the expected last
// message id; a long window would swallow a refill of an emptied stream.
const dedupeWindow = 100 * time.Millisecond

// metaOwner marks a stream as Chandler's in its metadata.
const metaOwner = "chandler"

// metaLog names the log that EVENTS was filled from.
const metaLog = "chandler-log"

// Subject is where the hints of a stream go.
func Subject(tenant string, s events.StreamID) string {
	return strings.Join([]string{SubjectEvents, tenant, string(s.Kind), s.UUID().String()}, ".")
}

// lastValue is a stream that holds the last value of each subject (DESIGN D8), read by direct get.
func lastValue(name, subject, description string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              name,
		Description:       description,
		Subjects:          []string{subject + ".>"},
		Storage:           jetstream.FileStorage,
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardOld,
		MaxMsgsPerSubject: 1,
		AllowDirect:       true,
		Duplicates:        dedupeWindow,
		Metadata:          map[string]string{metaOwner: "1"},
	}
}

// Streams is the configuration of every stream but EVENTS, which belongs to the Publisher.
func Streams() []jetstream.StreamConfig {
	return []jetstream.StreamConfig{
		lastValue(protocol.StreamPlans, protocol.SubjectPlans, "What is wanted of each namespace of each cluster."),
		lastValue(protocol.StreamReports, protocol.SubjectReport, "What is known of each namespace of each cluster."),
		lastValue(protocol.StreamContent, protocol.SubjectChunks, "Bundles by digest, in chunks."),
	}
}

// eventsConfig is EVENTS, filled from the log of that identity ("" while the log is empty).
func eventsConfig(logID string) jetstream.StreamConfig {
	meta := map[string]string{metaOwner: "1"}
	if logID != "" {
		meta[metaLog] = logID
	}
	return jetstream.StreamConfig{
		Name:        StreamEvents,
		Description: "Hints: the log's events in order. The record is in Postgres.",
		Subjects:    []string{SubjectEvents + ".>"},
		Storage:     jetstream.FileStorage,
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardOld,
		MaxMsgs:     HintsKept,
		AllowDirect: true,
		Duplicates:  dedupeWindow,
		Metadata:    meta,
	}
}

// Ensure makes PLANS, REPORTS and CONTENT where they are missing. A stream of one of these names that is
// not Chandler's is replaced, having said what it was: everything in these streams is written again from
// the record, and a stream in which nothing can be written would stop all clusters. (Chandler wants
// a NATS account of its own.) It returns what each stream is now.
func (b *Bus) Ensure(ctx context.Context) (map[string]*jetstream.StreamInfo, error) {
	infos := map[string]*jetstream.StreamInfo{}
	for _, cfg := range Streams() {
		info, err := b.ensure(ctx, cfg)
		if err != nil {
			return nil, err
		}
		infos[cfg.Name] = info
	}
	return infos, nil
}

func (b *Bus) ensure(ctx context.Context, cfg jetstream.StreamConfig) (*jetstream.StreamInfo, error) {
	s, err := b.js.Stream(ctx, cfg.Name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		if err := b.awaitRemoval(ctx, cfg.Name); err != nil {
			return nil, err
		}
		b.log.Info("creating stream", "stream", cfg.Name)
		return b.create(ctx, cfg)
	case err != nil:
		return nil, unavailable(err, "read stream %s", cfg.Name)
	}
	b.known.Store(cfg.Name, true)
	info := s.CachedInfo()
	if sameStream(info.Config, cfg) {
		return info, nil
	}
	return b.amend(ctx, cfg, info)
}

// removalTail is how long to wait before a stream that vanished is created again. nats-server forgets a stream before
// it has removed its files; a stream of the same name that is created in between loses its own files, and then accepts
// nothing until the server is restarted.
const removalTail = 500 * time.Millisecond

// awaitRemoval waits for the end of the removal of a stream that existed before.
func (b *Bus) awaitRemoval(ctx context.Context, name string) error {
	if _, was := b.known.LoadAndDelete(name); !was {
		return nil
	}
	t := time.NewTimer(removalTail)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return unavailable(context.Cause(ctx), "create stream %s", name)
	case <-t.C:
		return nil
	}
}

const (
	// maxUnacked is after how many publishes in a row without an acknowledgement a stream is replaced: a server may be
	// slow once or twice.
	maxUnacked = 3
	// replaceTimeout bounds the replacement; the publish before has used up its own time.
	replaceTimeout = 5 * time.Second
)

// Published counts the results of publishes into one of Streams, and returns err. A stream that repeatedly
// acknowledges nothing, although the server answers, is replaced: that is the state which removalTail avoids. All its
// content is written again from the event log.
func (b *Bus) Published(ctx context.Context, stream string, err error) error {
	count, _ := b.silent.LoadOrStore(stream, new(atomic.Int32))
	n, ok := count.(*atomic.Int32)
	if !ok || !errors.Is(err, context.DeadlineExceeded) {
		n.Store(0)
		return err
	}
	if n.Add(1) < maxUnacked {
		return err
	}
	n.Store(0)
	return errors.Join(err, b.replaceStream(context.WithoutCancel(ctx), stream))
}

func (b *Bus) replaceStream(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, replaceTimeout)
	defer cancel()
	i := slices.IndexFunc(Streams(), func(c jetstream.StreamConfig) bool { return c.Name == name })
	if i < 0 {
		return errs.New(errs.Internal, "stream %s is not one that can be replaced", name)
	}
	if _, err := b.js.Stream(ctx, name); err != nil {
		return unavailable(err, "read stream %s", name)
	}
	b.log.Warn("replacing a stream that accepts no messages", "stream", name)
	if err := b.js.DeleteStream(ctx, name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return unavailable(err, "delete stream %s", name)
	}
	_, err := b.ensure(ctx, Streams()[i])
	return err
}

// amend gives a stream its configuration: by an update if it is ours, by a new stream if it is foreign or cannot be
// updated.
func (b *Bus) amend(ctx context.Context, cfg jetstream.StreamConfig, info *jetstream.StreamInfo) (
	*jetstream.StreamInfo, error,
) {
	if info.Config.Metadata[metaOwner] != "" && slices.Equal(info.Config.Subjects, cfg.Subjects) {
		s, err := b.js.UpdateStream(ctx, cfg)
		if err == nil {
			return s.CachedInfo(), nil
		}
		if errs.Is(unavailable(err, ""), errs.Unavailable) {
			return nil, unavailable(err, "update stream %s", cfg.Name)
		}
	}
	b.log.Warn("replacing a foreign stream under our name", "stream", cfg.Name,
		"subjects", info.Config.Subjects, "messages", info.State.Msgs)
	if err := b.js.DeleteStream(ctx, cfg.Name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, unavailable(err, "delete foreign stream %s", cfg.Name)
	}
	return b.create(ctx, cfg)
}

func (b *Bus) create(ctx context.Context, cfg jetstream.StreamConfig) (*jetstream.StreamInfo, error) {
	s, err := b.js.CreateStream(ctx, cfg)
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another replica was faster
		if s, err = b.js.Stream(ctx, cfg.Name); err == nil {
			return s.CachedInfo(), nil
		}
	}
	if err != nil {
		return nil, unavailable(err, "create stream %s", cfg.Name)
	}
	return s.CachedInfo(), nil
}

// sameStream compares what decides how a stream behaves; the server fills in the rest by itself.
func sameStream(is, want jetstream.StreamConfig) bool {
	return is.Metadata[metaOwner] == want.Metadata[metaOwner] &&
		is.Metadata[metaLog] == want.Metadata[metaLog] &&
		slices.Equal(is.Subjects, want.Subjects) &&
		is.Retention == want.Retention &&
		is.Discard == want.Discard &&
		is.MaxMsgsPerSubject == max(want.MaxMsgsPerSubject, limitless(is.MaxMsgsPerSubject)) &&
		is.AllowDirect == want.AllowDirect &&
		is.Duplicates == want.Duplicates &&
		!is.Sealed
}

// limitless is how the server writes "no limit" where we leave 0.
func limitless(n int64) int64 {
	if n == -1 {
		return -1
	}
	return 0
}

// unavailable gives errs.Unavailable to what passes by itself (no connection, no leader, no answer in
// time) and errs.Internal to what the server refused.
func unavailable(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	var api jetstream.JetStreamError
	if errors.As(err, &api) && api.APIError() != nil && api.APIError().Code < 500 {
		return errs.Wrap(errs.Internal, err, format, args...)
	}
	return errs.Wrap(errs.Unavailable, err, format, args...)
}
