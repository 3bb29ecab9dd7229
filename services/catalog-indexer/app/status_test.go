package app

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"filippo.io/age"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/catalog-indexer/index"
)

// faked is an indexer with fake sources.
func faked(t *testing.T) (*bench, *fakeSources) {
	t.Helper()
	b, s := setup(t), newFakeSources()
	open := func(string) sources { return s }
	b.poller.open, b.fetcher.open = open, open
	return b, s
}

// image gives the indexer a catalog image.
func (b *bench) image(name string, s source.Settings) string {
	b.t.Helper()
	return b.intent(name, events.CatalogAdded{
		Name: name, SourceType: string(source.Image), Spec: b.settings(s),
		Templated: s.Template != "",
	})
}

// status is a row of catalog_api.catalog_status.
type status struct {
	State, Reason, Message, Connection, Error, ErrorReason, Reference, Resolved, Template, Revision string
	Connected, Polled, NextPoll                                                                     *time.Time
	Quarantined                                                                                     []string
	Errors, Warnings                                                                                int
}

func (b *bench) status(stream, variant string) (s status) {
	b.t.Helper()
	b.must(b.gateway.QueryRow(b.t.Context(),
		`select state, reason, message, connection, error, error_reason, reference, resolved, template, revision,
		connected, polled, next_look, quarantined, errors, warnings from catalog_api.catalog_status where catalog = $1 and variant = $2`, stream, variant).
		Scan(&s.State, &s.Reason, &s.Message, &s.Connection, &s.Error, &s.ErrorReason, &s.Reference, &s.Resolved,
			&s.Template, &s.Revision,
			&s.Connected, &s.Polled, &s.NextPoll, &s.Quarantined, &s.Errors, &s.Warnings))
	return s
}

var errAway = errs.New(errs.Unavailable, "registry.test does not answer")

// TestSourceAway proves that a source which does not answer is seen in the status and tried again, that what is
// in service stays, and that no event is appended (R-CAT-95, status table).
func TestSourceAway(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	fakes.put("registry.test/c:1", "p1", good)
	stream := b.image("harbour", source.Settings{Image: "registry.test/c:1"})
	if s := b.status(stream, ""); s.Connection != "IDLE" || s.State != "Loading" {
		t.Errorf("before the first poll: %+v", s)
	}
	b.must(b.pollOnce(stream))
	served := b.status(stream, "")
	if served.State != "Ready" || served.Connection != "READY" || served.Resolved != "registry.test/c:1@p1" ||
		served.Connected == nil || served.Polled == nil || served.NextPoll == nil {
		t.Errorf("after the first poll: %+v", served)
	}
	fakes.fail("registry.test/c:1", errAway)
	for attempts := range silentAttempts + 1 {
		if err := b.pollVariant(stream, "", attempts); !errors.Is(err, errAway) {
			t.Fatalf("attempt %d ends with %v: it would not be tried again", attempts, err)
		}
	}
	s := b.status(stream, "")
	if s.State != "Ready" || s.Connection != "TRANSIENT_FAILURE" || s.Error != errAway.Error() ||
		s.ErrorReason != "RegistryServerError" || s.Revision != served.Revision {
		t.Errorf("while the source is away: %+v", s)
	}
	if n := len(b.facts(stream)); n != 1 {
		t.Errorf("%d facts: %v", n, b.facts(stream))
	}
	fakes.put("registry.test/c:1", "p2", newer)
	b.must(b.pollOnce(stream))
	if s := b.status(stream, ""); s.Connection != "READY" || s.Error != "" || s.Revision == served.Revision {
		t.Errorf("when it is back: %+v", s)
	}
}

// TestNeverServed proves that a catalog which never answered is Failed at once, and recorded after some attempts, once.
func TestNeverServed(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	fakes.fail("registry.test/c:1", errAway)
	stream := b.image("harbour", source.Settings{Image: "registry.test/c:1"})
	for attempts, facts := range []int{0, 0, 1, 1, 1} {
		if err := b.pollVariant(stream, "", attempts); !errors.Is(err, errAway) {
			t.Fatalf("attempt %d ends with %v", attempts, err)
		}
		if s := b.status(stream, ""); s.State != "Failed" || s.Reason != "SourceUnreadable" ||
			s.Connection != "TRANSIENT_FAILURE" {
			t.Errorf("attempt %d: %+v", attempts, s)
		}
		if n := len(b.facts(stream)); n != facts {
			t.Errorf("attempt %d: %d facts, want %d", attempts, n, facts)
		}
	}
	fakes.put("registry.test/c:1", "p1", good)
	b.must(b.pollOnce(stream))
	if s := b.status(stream, ""); s.State != "Ready" || s.Connection != "READY" || len(b.facts(stream)) != 2 {
		t.Errorf("when it answers: %+v, facts %v", s, b.facts(stream))
	}
}

// TestPullOnlyWhatChanged proves that a poll asks first, and pulls only what is another one (R-CAT-95).
func TestPullOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	fakes.put("registry.test/c:1", "p1", good)
	stream := b.image("harbour", source.Settings{Image: "registry.test/c:1"})
	for range 3 {
		b.must(b.pollOnce(stream))
	}
	if probes, opens := fakes.count("probe registry.test/c:1"), fakes.count("open registry.test/c:1"); probes != 3 ||
		opens != 1 {
		t.Errorf("%d probes, %d pulls; want 3 and 1", probes, opens)
	}
}

// TestRefused proves that what a person has to correct is recorded once, with a reason, and polled again at the next
// turn.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err                 error
		reason, errorReason string
	}{
		{errs.New(errs.Forbidden, "the credentials are refused"), "SourceUnreadable", "RegistryServerError"},
		{errs.New(errs.Invalid, "the settings are wrong"), "SourceUnreadable", "SpecInvalidError"},
		{errs.New(errs.TooLarge, "a layer is too large"), "TooLarge", "RegistryServerError"},
	} {
		t.Run(c.errorReason+c.reason, func(t *testing.T) {
			t.Parallel()
			b, fakes := faked(t)
			fakes.fail("registry.test/c:1", c.err)
			stream := b.image("harbour", source.Settings{Image: "registry.test/c:1"})
			for range 2 {
				b.must(b.pollOnce(stream))
			}
			facts := b.facts(stream)
			if len(facts) != 1 || facts[0].(events.CatalogLoadFailed).Reason != c.reason {
				t.Errorf("facts %v", facts)
			}
			if s := b.status(stream, ""); s.State != "Failed" || s.Error != c.err.Error() ||
				s.ErrorReason != c.errorReason || s.NextPoll == nil {
				t.Errorf("status %+v", s)
			}
		})
	}
}

// TestMissingDigest proves that an image by digest which is not there yet is asked for again by itself: it never
// changes, but it may appear.
func TestMissingDigest(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	image := "registry.test/c@sha256:" + strings.Repeat("0", 64)
	stream := b.image("harbour", source.Settings{Image: image})
	b.must(b.pollOnce(stream))
	if s := b.status(stream, ""); s.State != "Failed" || s.NextPoll == nil {
		t.Errorf("missing: %+v", s)
	}
	fakes.put(image, "p1", good)
	b.must(b.pollOnce(stream))
	if s := b.status(stream, ""); s.State != "Ready" || s.NextPoll != nil {
		t.Errorf("there: %+v", s)
	}
}

// TestIntervals proves when a catalog is polled again by itself, and that an interval that cannot be used is
// replaced and reported (R-CAT-95, R-CAT-96).
func TestIntervals(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	now := time.Now()
	b.poller.now = func() time.Time { return now }
	digested := "registry.test/c@sha256:" + strings.Repeat("0", 64)
	for _, c := range []struct {
		settings source.Settings
		want     time.Duration // 0: never
		notice   string
	}{
		{source.Settings{Image: "registry.test/c:1"}, defaultRemotePoll, ""},
		{source.Settings{Image: "registry.test/c:1", Poll: "1h"}, time.Hour, ""},
		{source.Settings{Image: "registry.test/c:1", Poll: "0s"}, 0, ""},
		{source.Settings{Image: "registry.test/c:1", Poll: "often"}, source.FallbackPoll, "InvalidIntervalError"},
		{source.Settings{Path: "/layout", Image: "registry.test/c:1"}, defaultPoll, ""},
		{source.Settings{Image: digested}, 0, ""},
		{source.Settings{Image: digested, Poll: "2h"}, 2 * time.Hour, ""},
	} {
		fakes.put(c.settings.Image, "p", good)
		stream := b.image("c"+strings.ReplaceAll(now.String()+c.settings.Poll+c.settings.Path, "/", "")+
			c.settings.Image[len(c.settings.Image)-3:], c.settings)
		b.must(b.pollOnce(stream))
		s := b.status(stream, "")
		switch {
		case s.ErrorReason != c.notice || s.State != "Ready":
			t.Errorf("%+v: status %+v", c.settings, s)
		case c.want == 0 && s.NextPoll != nil, c.want > 0 &&
			(s.NextPoll == nil || s.NextPoll.Sub(now).Round(time.Second) != c.want):
			t.Errorf("%+v: next poll %v, want in %s", c.settings, s.NextPoll, c.want)
		}
	}
}

// TestLenient proves that a lenient catalog serves the packages that are in order and shows the others, in the event,
// the status and the findings; and that a change of what is left out alone is recorded.
func TestLenient(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	tree := fstest.MapFS{
		"buoy/catalog.yaml": {Data: []byte(good)},
		"kelp/catalog.yaml": {Data: []byte("schema: olm.package\nname: kelp\ndefaultChannel: none\n")},
	}
	fakes.set("registry.test/c:1", "p1", tree)
	stream := b.image("harbour", source.Settings{Image: "registry.test/c:1", Mode: source.Lenient})
	b.must(b.pollOnce(stream))
	first, published := b.facts(stream)[0].(events.CatalogRevisionPublished)
	if !published || first.Packages != 1 || !slices.Equal(first.Quarantined, []string{"kelp"}) {
		t.Fatalf("facts %v", b.facts(stream))
	}
	if s := b.status(stream, ""); s.State != "Ready" || !slices.Equal(s.Quarantined, []string{"kelp"}) ||
		s.Errors == 0 || !strings.Contains(s.Message, "1 packages quarantined") {
		t.Errorf("status %+v", s)
	}
	fakes.put("registry.test/c:1", "p2", good)
	b.must(b.pollOnce(stream))
	second := b.facts(stream)[1].(events.CatalogRevisionPublished)
	if second.Revision != first.Revision || len(second.Quarantined) != 0 || len(second.Changes) != 0 {
		t.Errorf("second fact %+v", second)
	}
}

// TestSickPackageStays proves that a package of a lenient catalog which becomes sick stays at its last good state, as a
// faulty catalog does (DESIGN D3): what else changed is served, and the package moves on when it is corrected.
func TestSickPackageStays(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	sick := strings.Replace(newer, "defaultChannel: steady", "defaultChannel: none", 1)
	kelp := func(text string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(strings.ReplaceAll(text, "buoy", "kelp"))}
	}
	fakes.set("registry.test/c:1", "p1", fstest.MapFS{
		"buoy/catalog.yaml": {Data: []byte(good)},
		"kelp/catalog.yaml": kelp(good),
	})
	stream := b.image("harbour", source.Settings{Image: "registry.test/c:1", Mode: source.Lenient})
	b.must(b.pollOnce(stream))
	first := b.facts(stream)[0].(events.CatalogRevisionPublished)

	fakes.set("registry.test/c:1", "p2", fstest.MapFS{
		"buoy/catalog.yaml": {Data: []byte(newer)},
		"kelp/catalog.yaml": kelp(sick),
	})
	b.must(b.pollOnce(stream))
	second := b.facts(stream)[1].(events.CatalogRevisionPublished)
	if second.Packages != 2 || second.Bundles != first.Bundles+1 ||
		!slices.Equal(second.Quarantined, []string{"kelp"}) ||
		len(second.Changes) != 1 || second.Changes[0].Package != "buoy" {
		t.Errorf("with a sick kelp: %+v", second)
	}

	fakes.set("registry.test/c:1", "p3", fstest.MapFS{
		"buoy/catalog.yaml": {Data: []byte(newer)},
		"kelp/catalog.yaml": kelp(newer),
	})
	b.must(b.pollOnce(stream))
	third := b.facts(stream)[2].(events.CatalogRevisionPublished)
	if third.Packages != 2 || len(third.Quarantined) != 0 || len(third.Changes) != 1 ||
		third.Changes[0].Package != "kelp" || third.Changes[0].Change != index.Changed {
		t.Errorf("with kelp corrected: %+v", third)
	}
}

// TestDisabled proves that a disabled catalog is not polled, keeps what it has, and goes on when it is enabled
// (R-CFG-10).
func TestDisabled(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	fakes.put("registry.test/c:1", "p1", good)
	spec := b.settings(source.Settings{Image: "registry.test/c:1"})
	stream := b.image("harbour", source.Settings{Image: "registry.test/c:1"})
	b.must(b.pollOnce(stream))
	served := b.status(stream, "").Revision
	change := events.CatalogChanged{SourceType: string(source.Image), Spec: spec, Disabled: true}
	b.intent("harbour", change)
	fakes.put("registry.test/c:1", "p2", newer)
	b.must(b.pollOnce(stream))
	b.clean(stream)
	b.due(stream)
	b.must(b.scheduler.markDue(t.Context()))
	if b.dirty(stream) != 0 || b.status(stream, "").Revision != served || len(b.facts(stream)) != 1 {
		t.Errorf("a disabled catalog is polled: %+v", b.status(stream, ""))
	}
	change.Disabled = false
	b.intent("harbour", change)
	if b.dirty(stream) != 1 {
		t.Error("an enabled catalog is not marked")
	}
	b.must(b.pollOnce(stream))
	if b.status(stream, "").Revision == served {
		t.Error("an enabled catalog is not polled")
	}
}

// blocking is a tree whose files come only when they are let go.
type blocking struct {
	fs.FS
	reached, free chan struct{}
}

func (f *blocking) Open(name string) (fs.File, error) {
	if name != "." {
		select {
		case f.reached <- struct{}{}:
		default:
		}
		<-f.free
	}
	return f.FS.Open(name)
}

// TestOldRevisionServesMeanwhile proves that queries are answered from the old revision until the new one is complete.
func TestOldRevisionServesMeanwhile(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	fakes.put("registry.test/c:1", "p1", good)
	stream := b.image("harbour", source.Settings{Image: "registry.test/c:1"})
	b.must(b.pollOnce(stream))
	old := b.status(stream, "").Revision
	slow := &blocking{
		FS: fstest.MapFS{"catalog.yaml": {Data: []byte(newer)}}, reached: make(chan struct{}, 1),
		free: make(chan struct{}),
	}
	fakes.set("registry.test/c:1", "p2", slow)
	done := make(chan error, 1)
	go func() {
		done <- b.poller.pollScope(context.WithoutCancel(t.Context()), bus.Scope{
			Tenant:  events.DefaultTenant,
			Cluster: stream,
		})
	}()
	<-slow.reached
	b.servedIs(stream, old)
	close(slow.free)
	b.must(<-done)
	if now := b.status(stream, "").Revision; now == old {
		t.Error("the new revision is not served")
	} else {
		b.servedIs(stream, now)
	}
}

// TestCredentials proves that a credential is found by name and decrypted, and that a new one has the catalogs that
// name it polled again, those alone (R-DIS-4).
func TestCredentials(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	id, err := age.GenerateX25519Identity()
	b.must(err)
	set, err := seal.ParseIdentities(id.String(), nil)
	b.must(err)
	opened := &credentials{catalogs: b.store.Catalogs, identities: set}
	_, err = opened.secret(t.Context(), events.DefaultTenant, "dock-pull")
	if !errs.Is(err, errs.NotFound) {
		t.Errorf("a credential that is not there gives %v", err)
	}
	b.secretIs("dock-pull", `{"auths":{}}`, id.Recipient())
	got, err := opened.secret(t.Context(), events.DefaultTenant, "dock-pull")
	if err != nil || got.Kind != source.DockerConfig || string(got.Value) != `{"auths":{}}` {
		t.Errorf("secret %s (%v)", got.Kind, err)
	}
	other, err := age.GenerateX25519Identity()
	b.must(err)
	stranger, err := seal.ParseIdentities(other.String(), nil)
	b.must(err)
	for _, wrong := range []seal.Identities{stranger, nil} {
		opened.identities = wrong
		if _, err := opened.secret(t.Context(), events.DefaultTenant, "dock-pull"); !errs.Is(
			err, errs.Forbidden) || strings.Contains(err.Error(), "auths") {
			t.Errorf("with another identity: %v", err)
		}
	}
	fakes.put("registry.test/c:1", "p1", good)
	naming := b.image("naming", source.Settings{Image: "registry.test/c:1", Secrets: []string{"dock-pull"}})
	without := b.image("without", source.Settings{Image: "registry.test/c:1"})
	for _, stream := range []string{naming, without} {
		b.clean(stream)
	}
	b.secretEvent("dock-pull", events.CatalogSecretSet{Name: "dock-pull", Kind: "dockerconfigjson", Credential: "c1:x"})
	if b.dirty(naming) != 1 || b.dirty(without) != 0 {
		t.Errorf("marked: naming %d, without %d", b.dirty(naming), b.dirty(without))
	}
	// Settings that do not open may name it. The poll, which is due then, says in the status why they do not.
	b.clean(naming)
	_, err = b.gateway.Exec(t.Context(), `update gateway.bodies set key_id = 'ffffffffffffffff' where commitment = $1`,
		b.settings(source.Settings{Image: "registry.test/c:1"}))
	b.must(err)
	b.secretEvent("dock-pull", events.CatalogSecretSet{Name: "dock-pull", Kind: "dockerconfigjson", Credential: "c1:y"})
	if b.dirty(naming) != 1 || b.dirty(without) != 1 {
		t.Errorf("marked: naming %d, what does not open %d", b.dirty(naming), b.dirty(without))
	}
	err = b.pollOnce(without)
	if said := b.status(without, "").Error; !bodies.Unopened(err) || !strings.Contains(said, "ffffffffffffffff") {
		t.Errorf("a poll of settings that do not open: %v, and the status says %q", err, said)
	}
	b.must(b.pollOnce(naming))
}
