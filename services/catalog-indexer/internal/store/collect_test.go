package store

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
)

// testRetention is between ages of a day and of a year.
const testRetention = 90 * 24 * time.Hour

// ages that rows may have.
const (
	fresh  = time.Duration(0)
	recent = 40 * 24 * time.Hour  // beyond the grace, within the retention
	old    = 365 * 24 * time.Hour // beyond both
)

// generated is one tenant with random content, and what of it must stay: computed slowly, from the list in the
// comment of Collect.
type generated struct {
	*bench
	tenant              string
	rand                *rand.Rand
	resolver, installer *pg.Pool

	contents  []load.Content
	docs      map[digest.Digest][]digest.Digest // package document → contents
	revisions map[string][]digest.Digest        // revision → package documents
	blobs     map[string]string                 // revision → document

	keepRevision, keepDoc, keepContent, keepBlob map[string]bool
	keepDecoded, keepFindings                    map[string]bool
	young                                        map[string]bool // touched within the grace
}

func (s *generated) age() time.Duration { return []time.Duration{fresh, recent, old}[s.rand.IntN(3)] }

func (s *generated) chance(oneIn int) bool { return s.rand.IntN(oneIn) == 0 }

func (s *generated) ago(d time.Duration) time.Time { return time.Now().Add(-d) }

func newGenerated(w *bench, resolver, installer *pg.Pool, seed uint64) *generated {
	return &generated{
		bench: w, tenant: fmt.Sprintf("tenant-%d", seed), rand: rand.New(rand.NewPCG(seed, 3)), resolver: resolver,
		installer: installer, docs: map[digest.Digest][]digest.Digest{}, revisions: map[string][]digest.Digest{},
		blobs: map[string]string{}, keepRevision: map[string]bool{}, keepDoc: map[string]bool{},
		keepContent: map[string]bool{}, keepBlob: map[string]bool{}, keepDecoded: map[string]bool{},
		keepFindings: map[string]bool{}, young: map[string]bool{},
	}
}

// fill makes everything.
func (s *generated) fill() {
	s.storeContents()
	s.storeDocs()
	s.storeRevisions()
	for i := range 4 {
		s.storeCatalog(i)
	}
	s.storeReferences()
	s.conclude()
}

func (s *generated) storeContents() {
	for p := range 3 {
		s.contents = append(s.contents, versions(fmt.Sprintf("p%d", p), 6, 20_000)...)
	}
	writer, err := s.Contents.Writer(s.t.Context(), s.tenant)
	s.must(err)
	for i, c := range s.contents {
		s.must(writer.Keep(c))
		if s.chance(2) {
			s.must(writer.Remember(digest.Bytes([]byte{byte(i)}), c.Digest, c.Canonical[:10_000]))
		}
		if i%5 == 4 { // several packs
			s.must(writer.Flush())
			writer, err = s.Contents.Writer(s.t.Context(), s.tenant)
			s.must(err)
		}
	}
	s.must(writer.Remember("unused", "", []byte("value")))
	s.must(writer.Flush())
	for _, c := range s.contents {
		s.touched("contents", "digest", string(c.Digest))
	}
	age := s.age()
	s.exec(`update catalog.decoded set touched = $2 where tenant = $1`, s.tenant, s.ago(age))
	s.keepDecoded["unused"] = age == fresh
}

func (s *generated) touched(table, key, name string) {
	age := s.age()
	s.young[name] = age == fresh
	s.exec(`update catalog.`+table+` set touched = $3 where tenant = $1 and `+key+` = $2`, s.tenant, name, s.ago(age))
}

func (s *generated) storeDocs() {
	for i := range 8 {
		p := catalog.Package{Name: fmt.Sprintf("doc%d", i)}
		var refs []digest.Digest
		for _, c := range s.contents {
			if s.chance(4) {
				refs = append(refs, c.Digest)
				p.Bundles = append(p.Bundles, catalog.Bundle{Name: c.Bundle, Content: c.Digest})
			}
		}
		d, err := p.Digest()
		s.must(err)
		s.must(s.Documents.PutPackages(s.t.Context(), s.tenant, []catalog.Package{p},
			map[string]digest.Digest{p.Name: d}))
		if s.chance(3) { // as a release before has stored it
			s.exec(`update catalog.packages set contents = null where tenant = $1 and digest = $2`, s.tenant, d)
		}
		s.docs[d] = refs
		s.touched("packages", "digest", string(d))
	}
}

func (s *generated) storeRevisions() {
	docs := slices.Sorted(maps.Keys(s.docs))
	for i := range 7 {
		name, blob := fmt.Sprintf("r%d", i), fmt.Sprintf("blob%d", i/2)
		for _, d := range docs {
			if s.chance(4) {
				s.revisions[name] = append(s.revisions[name], d)
				s.exec(`insert into catalog.revision_packages (tenant, revision, package, digest)
					values ($1, $2, $3, $3)`, s.tenant, name, d)
			}
		}
		s.blobs[name] = blob
		if s.exec(`insert into catalog.documents (tenant, digest, body) values ($1, $2, 'x') on conflict do nothing`,
			s.tenant, blob) == 1 {
			s.touched("documents", "digest", blob)
		}
		s.exec(`insert into catalog.revision_blobs (tenant, revision, package, schema, name, digest)
			values ($1, $2, '', 's', 'n', $3)`, s.tenant, name, blob)
	}
}

// storeCatalog makes a catalog with a history; of each variant every revision but the last was replaced.
func (s *generated) storeCatalog(i int) {
	stream, removed, left := fmt.Sprintf("stream%d", i), s.chance(2), s.age()
	variants := []string{""}
	if s.chance(2) {
		variants = []string{"", "1.34"}
	}
	version := 0
	current := map[string]string{}
	for _, v := range variants {
		ages := []time.Duration{old, max(s.age(), left), max(s.age(), left), left}
		slices.SortFunc(ages, func(a, b time.Duration) int { return int(b - a) })
		for n, age := range ages {
			version++
			revision := fmt.Sprintf("r%d", s.rand.IntN(7))
			s.exec(`insert into catalog.revisions (tenant, catalog, version, revision, previous, packages, bundles,
				created, variant)
				values ($1, $2, $3, $4, '', 0, 0, $5, $6)`, s.tenant, stream, version, revision, s.ago(age+time.Hour), v)
			current[v] = revision
			until := fresh // in service
			switch {
			case n+1 < len(ages):
				until = ages[n+1]
			case removed:
				until = left
			}
			s.keepRevision[revision] = s.keepRevision[revision] || until < testRetention
		}
	}
	s.exec(`insert into catalog.catalogs (tenant, stream, subject, source_type, spec, priority, removed, updated,
		revision)
		values ($1, $2, $2, 'directory', '', 0, $3, $4, $5)`, s.tenant, stream, removed, s.ago(left), current[""])
	if len(variants) == 2 {
		s.exec(`insert into catalog.variants (tenant, stream, variant, revision) values ($1, $2, '1.34', $3)`, s.tenant,
			stream, current["1.34"])
	}
	s.storeFindings(stream)
	if s.chance(2) {
		c := s.contents[s.rand.IntN(len(s.contents))]
		s.exec(`insert into catalog.bundle_images (tenant, catalog, image, package, bundle, content)
			values ($1, $2, 'i', 'p', 'b', $3)`, s.tenant, stream, c.Digest)
		s.keepContent[string(c.Digest)] = s.keepContent[string(c.Digest)] || !removed || left < testRetention
	}
}

func (s *generated) storeFindings(stream string) {
	age, shown := s.age(), s.chance(2)
	s.exec(`insert into catalog.findings (tenant, document, catalog, findings, created) values ($1, 'f', $2, '[]', $3)`,
		s.tenant, stream, s.ago(age))
	if shown {
		s.exec(`update catalog.catalogs set document = 'f' where tenant = $1 and stream = $2`, s.tenant, stream)
	}
	s.keepFindings[stream] = shown || age < testRetention
}

func (s *generated) storeReferences() {
	ctx := s.t.Context()
	for i, c := range s.contents {
		if s.chance(6) {
			_, err := s.resolver.Exec(ctx, `insert into resolver.content_references (tenant, kind, digest)
				values ($1, 'content', $2)`, s.tenant, c.Digest)
			s.must(err)
			s.keepContent[string(c.Digest)] = true
		}
		if s.chance(8) {
			_, err := s.installer.Exec(ctx, `insert into installer.csvs
				values ($1, 'c', 'n', $2, 's', 'Succeeded', '', 'p', '1', $3, '')`, s.tenant, fmt.Sprint(i), c.Digest)
			s.must(err)
			s.keepContent[string(c.Digest)] = true
		}
	}
	for d := range s.docs {
		if digest.Bytes([]byte(s.tenant + string(d)))[10]%4 == 0 {
			_, err := s.resolver.Exec(ctx, `insert into resolver.content_references (tenant, kind, digest)
				values ($1, 'package', $2)`, s.tenant, d)
			s.must(err)
			s.keepDoc[string(d)] = true
		}
	}
}

// conclude follows the references.
func (s *generated) conclude() {
	for r := range s.revisions {
		for _, d := range s.revisions[r] {
			s.keepDoc[string(d)] = s.keepDoc[string(d)] || s.keepRevision[r]
		}
	}
	for r, b := range s.blobs {
		s.keepBlob[b] = s.keepBlob[b] || s.keepRevision[r] || s.young[b]
	}
	for d, refs := range s.docs {
		s.keepDoc[string(d)] = s.keepDoc[string(d)] || s.young[string(d)]
		for _, c := range refs {
			s.keepContent[string(c)] = s.keepContent[string(c)] || s.keepDoc[string(d)]
		}
	}
	for i, c := range s.contents {
		d := string(c.Digest)
		s.keepContent[d] = s.keepContent[d] || s.young[d]
		s.keepDecoded[string(digest.Bytes([]byte{byte(i)}))] = s.keepContent[d]
	}
}

// nothingLost checks that all that must stay is there and can be read.
func (s *generated) nothingLost() {
	s.t.Helper()
	for _, c := range s.contents {
		if got, err := s.Contents.Read(s.t.Context(), s.tenant, c.Digest); s.keepContent[string(c.Digest)] &&
			(err != nil || len(got) != len(c.Canonical)) {
			s.t.Fatalf("%s of %s is referred to and cannot be read: %v", c.Bundle, s.tenant, err)
		}
	}
	for d := range s.docs {
		if _, err := s.Documents.Package(s.t.Context(), s.tenant, d); s.keepDoc[string(d)] && err != nil {
			s.t.Fatalf("%s: %v", s.tenant, err)
		}
	}
}

// exact checks that just what must stay is there.
func (s *generated) exact() {
	s.t.Helper()
	for table, want := range map[string]map[string]bool{
		"select digest from catalog.contents where tenant = $1":                  s.keepContent,
		"select digest from catalog.packages where tenant = $1":                  s.keepDoc,
		"select digest from catalog.documents where tenant = $1":                 s.keepBlob,
		"select catalog from catalog.findings where tenant = $1":                 s.keepFindings,
		"select distinct revision from catalog.revision_blobs where tenant = $1": s.keepRevision,
		"select key from catalog.decoded where tenant = $1 and content = ''":     {"unused": s.keepDecoded["unused"]},
	} {
		var wanted []string
		for name, keep := range want {
			if keep {
				wanted = append(wanted, name)
			}
		}
		slices.Sort(wanted)
		if diff := cmp.Diff(wanted, s.names(table)); diff != "" {
			s.t.Errorf("%s of %s (-want +got):\n%s", table, s.tenant, diff)
		}
	}
	for _, key := range s.names(`select key from catalog.decoded where tenant = $1`) {
		if !s.keepDecoded[key] {
			s.t.Errorf("%s: remembered value %s is still there", s.tenant, key)
		}
	}
	if n := s.count(`select count(*) from catalog.packs p where tenant = $1 and not exists (select
		from catalog.contents c where c.tenant = $1 and p.id = any (c.packs))
		and not exists (select from catalog.packages c where c.tenant = $1 and p.id = any (c.packs))
		and not exists (select from catalog.decoded c where c.tenant = $1 and p.id = any (c.packs))`, s.tenant); n != 0 {
		s.t.Errorf("%s: %d packs that nothing refers to", s.tenant, n)
	}
}

func (s *generated) names(sql string) []string {
	s.t.Helper()
	rows, err := s.pool.Query(s.t.Context(), sql, s.tenant)
	s.must(err)
	defer rows.Close()
	var out []string
	for rows.Next() {
		var name string
		s.must(rows.Scan(&name))
		out = append(out, name)
	}
	s.must(rows.Err())
	slices.Sort(out)
	return out
}

// TestCollect proves over random references that the collector removes all that nothing refers to and
// nothing else, wherever it is killed, and that a second turn finds nothing (DESIGN D3).
func TestCollect(t *testing.T) {
	t.Parallel()
	w := setup(t)
	resolver, installer := w.db.Pool(t, "resolver"), w.db.Pool(t, "installer")
	var seas []*generated
	for seed := range uint64(12) {
		s := newGenerated(w, resolver, installer, seed)
		s.fill()
		seas = append(seas, s)
	}
	w.must(w.Collector.noteContents(t.Context(), &Collected{}))
	told := map[string]int{}
	for _, step := range collectSteps() { // a process that is killed behind each
		c := Collected{Rows: map[string]int{}}
		w.must(w.Collector.collect(t.Context(), step, testRetention, &c))
		if c.Total() == 0 && !slices.Contains([]string{"search", "compared", "upgrades"}, step.kind) {
			t.Errorf("no %s were collected: the test proves nothing of them", step.kind)
		}
		if step.recorded {
			told[step.kind] = c.Total()
		}
		for _, s := range seas {
			s.nothingLost()
		}
	}
	for _, s := range seas {
		s.exact()
	}
	if diff := cmp.Diff(told, w.told()); diff != "" {
		t.Errorf("what went, and what events say (-want +got):\n%s", diff)
	}
	again, err := w.Collector.Collect(t.Context(), testRetention)
	if err != nil || again.Total() != 0 || again.Bytes != 0 {
		t.Errorf("the second turn: %+v %v", again, err)
	}
	for _, s := range seas {
		s.nothingLost()
	}
}

// told is how much of each kind has gone by the events of all tenants.
func (w *bench) told() map[string]int {
	w.t.Helper()
	rows, err := w.pool.Query(w.t.Context(), `select d ->> 'what', sum((d ->> 'count')::int) from
		(select convert_from(body, 'UTF8')::jsonb -> 'data' -> 'removed' as d from eventlog.appended
		where type = $1) as e group by 1`, events.CatalogsCollected{}.EventType())
	w.must(err)
	out := map[string]int{}
	var what string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&what, &n}, func() error {
		out[what] = n
		return nil
	})
	w.must(err)
	return out
}

// TestWhatGoesLeavesAnEvent: what events refer to does not go without an event that says how much, by which retention,
// and which, in the same transaction. Until all readers know that event it stays, and the rest goes.
func TestWhatGoesLeavesAnEvent(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.exec(`insert into catalog.revisions (tenant, catalog, version, revision, previous, packages, bundles, created)
		select $1, 'a stream', i, 'r' || i, '', 0, 0, '2000-01-01 00:00+00'::timestamptz + make_interval(days => i)
		from generate_series(1, 3) i`, tenant)
	w.exec(`insert into catalog.decoded (tenant, key, content, value, touched)
		values ($1, 'k', '', '', '2000-01-01')`, tenant)
	admin := w.db.Pool(t, pgtest.Admin)
	tell := events.CatalogsCollected{}.EventType()
	change := func(sql string, args ...any) {
		t.Helper()
		_, err := admin.Exec(t.Context(), sql, args...)
		w.must(err)
	}
	move := func(from, to string) {
		t.Helper()
		change(`with x as (delete from eventlog.`+from+` where type = $1 returning *)
			insert into eventlog.`+to+` (type, kind, writer, closes) select type, kind, writer, closes from x`, tell)
	}
	move("event_types", "coming_types")
	c, err := w.Collector.Collect(t.Context(), testRetention)
	if err != nil || !errs.Is(c.Postponed, errs.Unavailable) || c.Rows["revisions"] != 0 || c.Rows["decoded"] != 1 {
		t.Errorf("before all readers know the event: %+v, %v", c, err)
	}
	move("coming_types", "event_types")

	change(`create function public.refuse() returns trigger language plpgsql as
		$$ begin raise exception 'full'; end $$`)
	change(`create trigger refuse before insert on eventlog.appended execute function public.refuse()`)
	if _, err := w.Collector.Collect(t.Context(), testRetention); err == nil ||
		w.count(`select count(*) from catalog.revisions`) != 3 {
		t.Errorf("revisions went without an event (%v)", err)
	}
	change(`drop trigger refuse on eventlog.appended`)

	if c, err = w.Collector.Collect(t.Context(), testRetention); err != nil || c.Rows["revisions"] != 3 {
		t.Errorf("when they know it: %+v, %v", c, err)
	}
	head, err := w.Collector.log.Latest(t.Context(), w.pool, tenant, events.KindRetention, collectSubject)
	w.must(err)
	recs, err := w.Collector.log.ReadStream(t.Context(), w.pool, tenant, head.ID, 0)
	w.must(err)
	day := func(n int) time.Time { return time.Date(2000, 1, 1+n, 0, 0, 0, 0, time.UTC) }
	want := events.CatalogsCollected{
		Removed: events.NewRemoved("revisions", []string{"r3", "r2", "r1"}, day(1), day(3), testRetention),
	}
	if len(recs) != 1 || !cmp.Equal(recs[0].Payload, events.Payload(want)) || want.Removed.RetentionDays != 90 {
		t.Errorf("events %+v, want %+v", recs, want)
	}
}

// TestCollectWhileStoring proves that what a load relies upon is not collected under it: a bundle that
// nobody referred to for long is stored already, and published an hour later.
func TestCollectWhileStoring(t *testing.T) {
	t.Parallel()
	w := setup(t)
	list := versions("buoy", 3, 40_000)
	_, err := w.load(t.Context(), list)
	w.must(err)
	w.exec(`update catalog.contents set touched = now() - interval '1 year'`)
	writer, err := w.load(t.Context(), list[:2])
	w.must(err)
	c, err := w.Collector.Collect(t.Context(), testRetention)
	w.must(err)
	if writer.Known != 2 || c.Rows["contents"] != 1 {
		t.Errorf("knew %d, collected %v", writer.Known, c.Rows)
	}
	w.readable(list[:2])
}

// TestCollectorWaits proves that the collector and those who store exclude each other: the collector
// gives up for this turn rather than make everybody wait behind it.
func TestCollectorWaits(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tx, err := w.pool.Begin(t.Context())
	w.must(err)
	w.must(share(t.Context(), tx))
	if _, err := w.Collector.Collect(t.Context(), testRetention); err == nil {
		t.Error("the collector works while somebody makes something refer to content")
	}
	w.must(tx.Rollback(t.Context()))
	_, err = w.Collector.Collect(t.Context(), testRetention)
	w.must(err)
}

// TestRevisionIsWhole proves that a revision is not published where something of it was collected.
func TestRevisionIsWhole(t *testing.T) {
	t.Parallel()
	w := setup(t)
	list := versions("buoy", 2, 20_000)
	_, err := w.load(t.Context(), list)
	w.must(err)
	p := catalog.Package{Name: "buoy", Bundles: []catalog.Bundle{
		{Name: "a", Content: list[0].Digest},
		{Name: "b", Content: list[1].Digest},
	}}
	d, err := p.Digest()
	w.must(err)
	published := &Published{Revision: "sha256:0123456789abcdef", Packages: map[string]digest.Digest{"buoy": d}}
	publish := func() error {
		tx, err := w.pool.Begin(t.Context())
		w.must(err)
		//nolint:errcheck // only insertRevision is tested
		defer tx.Rollback(context.WithoutCancel(t.Context()))
		return insertRevision(t.Context(), tx, tenant, published)
	}
	if publish() == nil {
		t.Error("a revision was published without its package document")
	}
	w.must(w.Documents.PutPackages(t.Context(), tenant, []catalog.Package{p}, published.Packages))
	w.must(publish())
	w.exec(`delete from catalog.contents where digest = $1`, list[1].Digest)
	if publish() == nil {
		t.Error("a revision was published without one of its bundles")
	}
}

// While intents are read again, catalogs that were not read yet look as if they had been removed: nothing is collected
// behind the head.
func TestNothingIsCollectedBehindTheHead(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.exec(`insert into catalog.revisions (tenant, catalog, version, revision, previous, packages, bundles, created)
		values ($1, 'a stream', 1, 'r', '', 0, 0, '2000-01-01')`, tenant)
	move := func(position int) {
		_, err := w.db.Pool(t, "admin").Exec(t.Context(), `update eventlog.checkpoints set position = $1`, position)
		w.must(err)
	}
	move(5)
	move(0)
	if c, err := w.Collector.Collect(t.Context(), MinRetention); err != nil || c.Total() != 0 || w.count(
		`select count(*) from catalog.revisions`) != 1 {
		t.Errorf("collected %+v, %v", c, err)
	}
	move(5)
	if c, err := w.Collector.Collect(t.Context(), MinRetention); err != nil || c.Rows["revisions"] != 1 {
		t.Errorf("at the head: %+v, %v", c, err)
	}
}
