package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// HintsKept bounds EVENTS. A hint is disposable; these are kept so that people and tools that read the
// stream find the recent past. At about 1 KB a hint the stream stays near 256 MB.
const HintsKept = 1 << 18

// dedupeWindow is the least that the server takes. Order and uniqueness come from the expected last
// message id; a long window would swallow a refill of an emptied stream.
const dedupeWindow = 100 * time.Millisecond

// metaInstallation says in a stream's metadata whose it is.
const metaInstallation = "chandler-installation"

// metaApplied holds in a stream's metadata what Settings were applied, so that what differs from them is known to be
// somebody's own choice.
const metaApplied = "chandler-applied"

// Subject is where the hints of a stream of the log go.
func Subject(tenant string, s events.StreamID) string {
	return strings.Join([]string{protocol.SubjectEvents, tenant, string(s.Kind), s.UUID().String()}, ".")
}

// Streams are the kinds of streams that an installation has.
func Streams() []string {
	return []string{protocol.StreamEvents, protocol.StreamPlans, protocol.StreamReports, protocol.StreamContent}
}

// StreamName is the name of this installation's stream of a kind.
func (b *Bus) StreamName(kind string) string { return protocol.StreamName(b.installation, kind) }

// Installation is whose streams these are.
func (b *Bus) Installation() string { return b.installation }

// Stream is this installation's stream of a kind; jetstream.ErrStreamNotFound where it is missing.
func (b *Bus) Stream(ctx context.Context, kind string) (jetstream.Stream, error) {
	return b.js.Stream(ctx, b.StreamName(kind))
}

// shape is how a stream of a kind has to behave; what is not in here an operator may choose.
func (b *Bus) shape(kind string) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:              b.StreamName(kind),
		Storage:           jetstream.FileStorage,
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardNew, // a full stream refuses, it does not forget
		MaxMsgsPerSubject: 1,                    // the last value of each subject (DESIGN D8), read by direct get
		AllowDirect:       true,
		Duplicates:        dedupeWindow,
		Metadata:          map[string]string{metaInstallation: b.installation},
	}
	switch kind {
	case protocol.StreamEvents:
		c.Description = "Hints: the log's events in order. The record is in Postgres."
		c.Subjects = []string{protocol.SubjectEvents + ".>"}
		c.Discard, c.MaxMsgsPerSubject, c.MaxMsgs = jetstream.DiscardOld, -1, HintsKept
	case protocol.StreamPlans:
		c.Description, c.Subjects = "What is wanted of each namespace of each cluster.", subjects(protocol.SubjectPlans)
	case protocol.StreamReports:
		c.Description, c.Subjects = "What is known of each namespace of each cluster.", subjects(protocol.SubjectReport)
	case protocol.StreamContent:
		c.Description, c.Subjects = "Bundles by digest, in chunks.", subjects(protocol.SubjectChunks)
	}
	return c
}

func subjects(prefix string) []string { return []string{prefix + ".>"} }

// Ensure makes the streams that are missing, and gives those of this installation the shape that they need, keeping
// what an operator chose. No stream is ever deleted: one that is somebody else's, under a name or with subjects of
// ours, is an error that names it and its owner. Each stream stands for itself: infos holds those that can be used, by
// kind, and the error is about the others. A connection that shapes no streams only reads them.
func (b *Bus) Ensure(ctx context.Context) (infos map[string]*jetstream.StreamInfo, err error) {
	infos = map[string]*jetstream.StreamInfo{}
	var failed []error
	for _, kind := range Streams() {
		info, err := b.ensure(ctx, kind)
		b.streams.found(kind, info, b.keeper, err)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		infos[kind] = info
	}
	return infos, errors.Join(failed...)
}

// Ensured is this installation's stream of a kind, made if it is missing. The error is errs.Unavailable where it cannot
// be used now.
func (b *Bus) Ensured(ctx context.Context, kind string) (jetstream.Stream, error) {
	s, err := b.Stream(ctx, kind)
	foreign := err == nil && s.CachedInfo().Config.Metadata[metaInstallation] != b.installation
	if foreign || errors.Is(err, jetstream.ErrStreamNotFound) {
		info, err := b.ensure(ctx, kind)
		b.streams.found(kind, info, b.keeper, err)
		if err != nil {
			return nil, errs.Wrap(errs.Unavailable, err, "make stream %s", b.StreamName(kind))
		}
		s, err = b.Stream(ctx, kind)
		return s, errs.Wrap(errs.Unavailable, err, "read stream %s", b.StreamName(kind))
	}
	return s, errs.Wrap(errs.Unavailable, err, "read stream %s", b.StreamName(kind))
}

func (b *Bus) ensure(ctx context.Context, kind string) (*jetstream.StreamInfo, error) {
	name := b.StreamName(kind)
	s, err := b.js.Stream(ctx, name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound) && b.keeper == nil:
		return nil, errs.New(errs.Unavailable, "stream %s is missing; the installer makes it", name)
	case errors.Is(err, jetstream.ErrStreamNotFound):
		if err := b.awaitRemoval(ctx, name); err != nil {
			return nil, err
		}
		b.log.Info("creating stream", "stream", name)
		return b.create(ctx, kind)
	case err != nil:
		return nil, unavailable(err, "read stream %s", name)
	}
	info := s.CachedInfo()
	if owner := info.Config.Metadata[metaInstallation]; owner != b.installation {
		return nil, b.foreign(kind, info)
	}
	b.streams.seen(name)
	if b.keeper == nil {
		return info, nil
	}
	return b.amend(ctx, kind, info)
}

// foreign says that a stream is in the way.
func (b *Bus) foreign(kind string, info *jetstream.StreamInfo) error {
	return errs.New(errs.Conflict, "stream %s (subjects %s, %d messages) belongs to %s, and is in the way of stream %s of "+
		"this installation: give each installation a NATS account of its own; if the stream is not needed any more, "+
		"chandler bus rebuild --replace %s", info.Config.Name, strings.Join(info.Config.Subjects, ", "),
		info.State.Msgs, ownerOf(info), b.StreamName(kind), info.Config.Name)
}

// ownerOf says whose a stream is, as far as it says so.
func ownerOf(info *jetstream.StreamInfo) string {
	switch id := info.Config.Metadata[metaInstallation]; {
	case id != "":
		return "the Chandler installation " + id
	case info.Config.Description != "":
		return fmt.Sprintf("somebody else (%.80q)", info.Config.Description)
	default:
		return "somebody else"
	}
}

// removalTail is how long to wait before a stream that vanished is created again. nats-server forgets a stream before
// it has removed its files; a stream of the same name that is created in between loses its own files, and then accepts
// nothing until the server is restarted.
const removalTail = 500 * time.Millisecond

// awaitRemoval waits for the end of the removal of a stream that existed before.
func (b *Bus) awaitRemoval(ctx context.Context, name string) error {
	if !b.streams.forget(name) {
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

func (b *Bus) create(ctx context.Context, kind string) (*jetstream.StreamInfo, error) {
	cfg := b.keeper.applied(b.shape(kind), kind)
	s, err := b.js.CreateStream(ctx, cfg)
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another replica was faster
		if s, err = b.js.Stream(ctx, cfg.Name); err == nil {
			return s.CachedInfo(), nil
		}
	}
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && api.ErrorCode == overlapping {
		return nil, b.overlap(ctx, kind)
	}
	if err != nil {
		return nil, unavailable(err, "create stream %s", cfg.Name)
	}
	return s.CachedInfo(), nil
}

// overlapping is the server's code for a stream whose subjects another one has.
const overlapping jetstream.ErrorCode = 10065

// overlap finds the stream that has subjects of ours.
func (b *Bus) overlap(ctx context.Context, kind string) error {
	name, err := b.js.StreamNameBySubject(ctx, b.shape(kind).Subjects[0])
	if err != nil {
		return unavailable(err, "find the stream that has the subjects of %s", b.StreamName(kind))
	}
	s, err := b.js.Stream(ctx, name)
	if err != nil {
		return unavailable(err, "read stream %s", name)
	}
	return b.foreign(kind, s.CachedInfo())
}

// amend gives a stream of ours the shape that it needs. What the server does not let us change is said, and the stream
// stays as it is.
func (b *Bus) amend(ctx context.Context, kind string, info *jetstream.StreamInfo) (*jetstream.StreamInfo, error) {
	cfg := amended(info.Config, b.shape(kind), b.keeper, kind)
	if sameStream(info.Config, cfg) {
		return info, nil
	}
	b.log.Info("changing a stream", "stream", cfg.Name)
	s, err := b.js.UpdateStream(ctx, cfg)
	if err != nil {
		return nil, unavailable(err, "stream %s is not as it has to be, and NATS does not let it be changed", cfg.Name)
	}
	return s.CachedInfo(), nil
}

// amended is what a stream is to be: is, with what decides how it behaves from want. Replicas, placement, bounds,
// compression and whatever else somebody chose stay, unless they are what Settings gave it before.
func amended(is, want jetstream.StreamConfig, settings *StreamSettings, kind string) jetstream.StreamConfig {
	out := is
	out.Subjects, out.Retention, out.Discard = want.Subjects, want.Retention, want.Discard
	out.MaxMsgsPerSubject, out.AllowDirect, out.NoAck = want.MaxMsgsPerSubject, want.AllowDirect, false
	out.Duplicates, out.Description = want.Duplicates, want.Description
	out.Metadata = maps.Clone(is.Metadata)
	if unlimited(out.MaxMsgs) {
		out.MaxMsgs = want.MaxMsgs
	}
	return settings.applied(out, kind)
}

// sameStream compares what Chandler decides; the server fills in the rest by itself.
func sameStream(is, want jetstream.StreamConfig) bool {
	return slices.Equal(is.Subjects, want.Subjects) && is.Description == want.Description &&
		is.Retention == want.Retention && is.Discard == want.Discard && is.NoAck == want.NoAck &&
		sameLimit(is.MaxMsgsPerSubject, want.MaxMsgsPerSubject) && sameLimit(is.MaxMsgs, want.MaxMsgs) &&
		sameLimit(is.MaxBytes, want.MaxBytes) && is.MaxAge == want.MaxAge && is.Replicas == want.Replicas &&
		is.AllowDirect == want.AllowDirect && is.Duplicates == want.Duplicates &&
		is.Metadata[metaInstallation] == want.Metadata[metaInstallation] &&
		is.Metadata[metaApplied] == want.Metadata[metaApplied] &&
		slices.Equal(tags(is.Placement), tags(want.Placement))
}

func tags(p *jetstream.Placement) []string {
	if p == nil {
		return nil
	}
	return p.Tags
}

// unlimited: the server writes "no limit" as -1 where we leave 0.
func unlimited(n int64) bool { return n <= 0 }

func sameLimit(a, b int64) bool { return a == b || unlimited(a) && unlimited(b) }

// StreamSettings are what an installation may choose for its streams. What is zero is left to the server, or to whoever
// set it there.
type StreamSettings struct {
	Replicas      int      `json:"replicas,omitempty"`
	PlacementTags []string `json:"placementTags,omitempty"`
	// MaxBytes bounds streams, by kind. One that is full refuses what is new until there is room; EVENTS drops the
	// oldest.
	MaxBytes map[string]int64 `json:"maxBytes,omitempty"`
	// EventsMaxAge bounds how long hints are kept, in seconds.
	EventsMaxAge int64 `json:"eventsMaxAgeSeconds,omitempty"`
}

// maxReplicas is what JetStream takes at most.
const maxReplicas = 5

// ParseStreamSettings reads settings from JSON; "" is none.
func ParseStreamSettings(text string) (s StreamSettings, err error) {
	if text == "" {
		return s, nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, errs.New(errs.Invalid, "settings of streams: %v", err)
	}
	if s.Replicas < 0 || s.Replicas > maxReplicas {
		return s, errs.New(errs.Invalid, "settings of streams: replicas is %d, want 1 to %d, or 0 for the server's default",
			s.Replicas, maxReplicas)
	}
	for _, kind := range slices.Sorted(maps.Keys(s.MaxBytes)) {
		if !slices.Contains(Streams(), kind) || s.MaxBytes[kind] < 0 {
			return s, errs.New(errs.Invalid, "settings of streams: maxBytes of %s is %d, want bytes of %s", kind,
				s.MaxBytes[kind], strings.Join(Streams(), ", "))
		}
	}
	if s.EventsMaxAge < 0 {
		return s, errs.New(errs.Invalid, "settings of streams: eventsMaxAgeSeconds is %d", s.EventsMaxAge)
	}
	return s, nil
}

// chosen is what the settings say of one stream; it is kept in the stream's metadata.
type chosen struct {
	Replicas int           `json:"replicas,omitempty"`
	Tags     []string      `json:"tags,omitempty"`
	MaxBytes int64         `json:"maxBytes,omitempty"`
	MaxAge   time.Duration `json:"maxAge,omitempty"`
}

func (s *StreamSettings) of(kind string) chosen {
	c := chosen{Replicas: s.Replicas, Tags: s.PlacementTags, MaxBytes: s.MaxBytes[kind]}
	if kind == protocol.StreamEvents {
		c.MaxAge = time.Duration(s.EventsMaxAge) * time.Second
	}
	return c
}

// applied returns c with the settings where nobody has chosen anything else: where c has nothing, or what the settings
// gave it the last time.
func (s *StreamSettings) applied(c jetstream.StreamConfig, kind string) jetstream.StreamConfig {
	var before chosen
	// What somebody wrote there that is not ours counts as nothing.
	_ = json.Unmarshal([]byte(c.Metadata[metaApplied]), &before)
	now := s.of(kind)
	if now.Replicas > 0 && (c.Replicas <= 1 || c.Replicas == before.Replicas) {
		c.Replicas = now.Replicas
	}
	if len(now.Tags) > 0 && (len(tags(c.Placement)) == 0 || slices.Equal(tags(c.Placement), before.Tags)) {
		p := jetstream.Placement{Tags: now.Tags}
		if c.Placement != nil {
			p.Cluster = c.Placement.Cluster
		}
		c.Placement = &p
	}
	if unlimited(c.MaxBytes) || c.MaxBytes == before.MaxBytes {
		c.MaxBytes = now.MaxBytes
	}
	if c.MaxAge == 0 || c.MaxAge == before.MaxAge {
		c.MaxAge = now.MaxAge
	}
	if c.Metadata = maps.Clone(c.Metadata); c.Metadata == nil {
		c.Metadata = map[string]string{}
	}
	text, err := json.Marshal(now)
	if err == nil && string(text) != "{}" {
		c.Metadata[metaApplied] = string(text)
	} else {
		delete(c.Metadata, metaApplied)
	}
	return c
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
