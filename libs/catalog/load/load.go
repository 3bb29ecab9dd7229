package load

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"sync"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/docs"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/limitfs"
	"github.com/chandler-fleet/chandler/libs/catalog/validate"
	"github.com/chandler-fleet/chandler/libs/digest"
)

// Options say how to load.
type Options struct {
	// Workers decode in parallel; 0 means one per processor.
	Workers int
	// Keep takes the content of every bundle that has manifests at hand, from several goroutines at once
	// and before Load returns. Its first error ends the load. Nil keeps nothing.
	Keep func(Content) error
	// Memory, where set, spares decoding what was decoded before.
	Memory Memory
	// Stop ends the load early when closed, also in the middle of a file.
	Stop <-chan struct{}
	// MaxBytes is how much is read of all files together; 0 means MaxCatalogBytes.
	MaxBytes int64
	// Lenient leaves out packages with errors, whole, and serves the others: see Catalog.Quarantined.
	Lenient bool
}

func (o Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// Catalog is what a directory tree holds: every valid package, whatever is wrong, and blobs of
// schemas that Chandler does not know. It may be served where Err is nil.
type Catalog struct {
	Packages []catalog.Package // sorted by name
	Blobs    []Blob            // every blob of an unknown schema, sorted by package, schema, name, digest
	Findings catalog.Findings
	// Quarantined are the packages that a lenient load left out, sorted by name.
	Quarantined []Quarantine
	Stats       Stats
	digests     map[string]digest.Digest // of Packages, by name
	lenient     bool
	blocking    catalog.Findings // of a lenient load: errors that belong to no package
}

// Stats count what was read.
type Stats struct {
	Files, Documents, BundleDirectories int
	Bytes                               int64
}

// Blob is a blob of an unknown schema, kept as it is (R-CAT-8). Package is empty for one that names
// no package of the catalog.
type Blob struct {
	Package, Schema, Name string
	Digest                digest.Digest
	Raw                   json.RawMessage
}

// ErrStopped is returned by Load where Options.Stop was closed.
var ErrStopped = errors.New("the load was stopped")

// Load reads the file-based catalog and the bundle directories below the root of fsys. All that is
// wrong with them is in Findings, all at once, each with its place and rule; an error is one of
// Options.Keep, or ErrStopped.
func Load(fsys fs.FS, o Options) (*Catalog, error) {
	most := cmp.Or(o.MaxBytes, catalog.MaxCatalogBytes)
	files := limitfs.New(fsys, most, o.Stop)
	l := &loader{fs: files, stop: o.Stop, failed: make(chan struct{})}
	l.keep = l.keeping(o.Keep)
	l.memory = memory{o.Memory, l.failWith}
	w := &walker{fs: files}
	if st, err := fs.Stat(files, "."); err != nil || !st.IsDir() {
		w.reportf(catalog.SeverityError, ".", "R-CAT-43", "the root of a catalog must be a directory that can be read")
	} else {
		w.walk(".", nil, 0)
	}
	if len(w.sources) == 0 && len(w.findings) == 0 {
		w.reportf(catalog.SeverityError, ".", "R-CAT-1", "the directory holds no catalog content")
	}
	parts := l.run(w.sources, o.workers())
	if l.err != nil {
		return nil, l.err
	}
	if files.Spent() {
		w.unread(validate.ScopeAll, ".", "R-CAT-1",
			"the files of the catalog have more than %d bytes together; give a directory that holds the catalog "+
				"alone, or divide it", most)
	}
	parts = slices.Concat(w.passOver(parts), []part{{findings: w.findings, notes: &w.notes}})
	c := assemble(parts, o)
	c.locate(limitfs.New(fsys, most, o.Stop))
	if files.Stopped() {
		return nil, ErrStopped
	}
	c.Stats = l.stats
	return c, nil
}

// loader spreads documents over workers. Results carry their order, so that the outcome does not
// depend on who was first.
type loader struct {
	fs *limitfs.FS
	memory
	keep  keeper
	stop  <-chan struct{}
	stats Stats

	once   sync.Once
	failed chan struct{} // closed with err set
	err    error
}

// fail ends the load with its first error.
func (l *loader) failWith(err error) {
	l.once.Do(func() {
		l.err = err
		close(l.failed)
	})
}

// keeping hands content on until the first error.
func (l *loader) keeping(keep func(Content) error) keeper {
	return func(c Content) error {
		if keep == nil {
			return nil
		}
		err := keep(c)
		if err != nil {
			l.failWith(err)
		}
		return err
	}
}

// worker is what one goroutine uses again and again.
type worker struct {
	outer docs.Parser // of documents and of manifests in bundle directories
	inner docs.Parser // of manifests inside documents
	space space       // for the files of a bundle directory
}

// job is one document or one bundle directory.
type job struct {
	source int
	path   string
	bundle bool
	pkg    string // of a bundle directory, see source
	chunk  docs.Chunk
}

// part is what one job found.
type part struct {
	source, line int
	envelope     bool // a finding says that this is no catalog document at all
	packages     []*validate.PackageDraft
	channels     []*validate.ChannelDraft
	bundles      []*validate.BundleDraft
	deprecations []*validate.DeprecationsDraft
	others       []otherDraft
	findings     []catalog.Finding
	notes        *notes // of the walk
}

type otherDraft struct {
	validate.Place
	blob Blob
}

func (l *loader) run(sources []source, workers int) []part {
	jobs := make(chan job, workers)
	var mu sync.Mutex
	var parts []part
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			var k worker
			for j := range jobs {
				p := l.do(j, &k)
				j.chunk.Release()
				mu.Lock()
				parts = append(parts, p)
				mu.Unlock()
			}
		})
	}
	own := l.produce(sources, jobs)
	close(jobs)
	wg.Wait()
	parts = append(parts, own...)
	slices.SortStableFunc(parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.line, b.line))
	})
	return parts
}

// produce cuts the sources into jobs, and returns what is wrong with whole files.
func (l *loader) produce(sources []source, jobs chan<- job) []part {
	var own []part
	for i, s := range sources {
		if l.fs.Stopped() {
			l.failWith(ErrStopped)
		}
		if l.ended() || l.fs.Spent() {
			break
		}
		send := func(j job) error {
			select {
			case jobs <- j:
				return nil
			case <-l.stop:
				l.failWith(ErrStopped)
			case <-l.failed:
			}
			return l.err
		}
		var err error
		if s.bundle {
			l.stats.BundleDirectories++
			err = send(job{source: i, path: s.path, bundle: true, pkg: s.pkg})
		} else {
			l.stats.Files++
			l.stats.Bytes += s.size
			err = l.split(i, s.path, send)
		}
		if err != nil && !l.ended() {
			own = append(own, failedFile(i, s.path, err))
		}
	}
	return own
}

func (l *loader) ended() bool {
	select {
	case <-l.failed:
		return true
	default:
		return false
	}
}

func (l *loader) split(i int, file string, send func(job) error) error {
	f, err := l.fs.Open(file)
	if err != nil {
		return err
	}
	err = docs.Split(f, docLimits(), func(c docs.Chunk) error {
		l.stats.Documents++
		return send(job{source: i, path: file, chunk: c})
	})
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func failedFile(i int, file string, err error) part {
	at := validate.Place{File: file}
	message := err.Error()
	if e, ok := errors.AsType[*docs.Error](err); ok {
		at.Line, at.Column, message = e.Line, e.Column, e.Text()
	}
	return part{
		source: i, line: at.Line,
		findings: []catalog.Finding{at.Finding(catalog.SeverityError, "R-CAT-1", "",
			"the file cannot be loaded: %s; fix it, or exclude it in %s", message, ignoreFile)},
	}
}

func (l *loader) do(j job, k *worker) part {
	if j.bundle {
		p := part{source: j.source}
		k.space.reset()
		d, findings := bundleDir(l.fs, j.path, j.pkg, k, l.memory, l.keep)
		if d != nil {
			p.bundles = append(p.bundles, d)
		}
		p.findings = findings
		return p
	}
	if !l.remembers(j.chunk) {
		return l.document(j, k)
	}
	var other *part
	d, findings := l.recall(func() digest.Digest { return digest.Bytes(j.chunk.Text()) },
		validate.Place{File: j.path, Line: j.chunk.Line()}, func() (*validate.BundleDraft, []catalog.Finding, bool) {
			p := l.document(j, k)
			if len(p.bundles) != 1 {
				other = &p
				return nil, nil, false
			}
			return p.bundles[0], p.findings, true
		})
	if other != nil {
		return *other
	}
	return part{source: j.source, line: j.chunk.Line(), bundles: some(d), findings: findings}
}

// document decodes one document.
func (l *loader) document(j job, k *worker) part {
	value, err := k.outer.Parse(j.chunk, docLimits())
	if err != nil {
		p := failedFile(j.source, j.path, hint(err, j.chunk))
		p.envelope = !looksLikeData(j.path, j.chunk)
		return p
	}
	p := part{source: j.source, line: j.chunk.Line()}
	if !value.Exists() {
		return p
	}
	b, f := readBlob(j.path, value)
	if f != nil {
		p.envelope, p.findings = true, []catalog.Finding{*f}
		return p
	}
	if p.findings = b.faulty(k.outer.Faults()); len(p.findings) > 0 {
		return p
	}
	l.decode(b, &k.inner, &p)
	return p
}

// looksLikeData reports whether a document that cannot be read was meant for the catalog, so that its
// error counts beside bundle directories too.
func looksLikeData(file string, c docs.Chunk) bool {
	switch path.Ext(file) {
	case ".yaml", ".yml", ".json":
		return bytes.Contains(c.Text(), []byte("schema"))
	}
	return false
}

// hint says what a file probably is, where its first bytes show it.
func hint(err *docs.Error, c docs.Chunk) *docs.Error {
	if bytes.HasPrefix(c.Text(), []byte("SQLite format 3")) {
		return &docs.Error{
			Line: err.Line,
			Message: "it is an SQLite database, a format no longer in use; migrate it to a file-based catalog " +
				"(R-CAT-75)",
		}
	}
	return err
}

// decode files a blob under its schema.
func (l *loader) decode(b blob, inner *docs.Parser, p *part) {
	switch {
	case b.schema == catalog.SchemaPackage:
		d, f := draftPackage(b)
		p.packages, p.findings = some(d), f
	case b.schema == catalog.SchemaChannel:
		d, f := draftChannel(b)
		p.channels, p.findings = some(d), f
	case b.schema == catalog.SchemaBundle:
		d, f := draftBundle(b, inner, l.keep)
		p.bundles, p.findings = some(d), f
	case b.schema == catalog.SchemaDeprecations:
		d, f := draftDeprecations(b)
		p.deprecations, p.findings = some(d), f
	case isTemplate(b.schema):
		p.envelope = true
		p.findings = []catalog.Finding{b.Finding(catalog.SeverityWarning, "R-CAT-10", b.pkg,
			"a template (%s) is no catalog content and is passed over; expand it, or exclude the file in %s", b.schema,
			ignoreFile)}
	default:
		l.other(b, p)
	}
}

func some[T any](d *T) []*T {
	if d == nil {
		return nil
	}
	return []*T{d}
}

func (l *loader) other(b blob, p *part) {
	raw := bytes.Clone(b.value.JSON())
	p.others = []otherDraft{{b.Place, Blob{
		Package: b.pkg, Schema: b.schema, Name: b.name, Digest: digest.Bytes(raw),
		Raw: raw,
	}}}
}

func docLimits() docs.Limits {
	return docs.Limits{
		FileBytes: catalog.MaxFileBytes, DocumentBytes: catalog.MaxDocumentBytes, Documents: catalog.MaxDocuments,
		Depth: catalog.MaxNesting, Nodes: catalog.MaxNodes,
	}
}
