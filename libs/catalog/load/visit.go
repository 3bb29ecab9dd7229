package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"runtime"
	"slices"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/docs"
)

// Document is one document of a catalog as its file has it, or a bundle directory. It is for tools that
// write catalogs; Load is for those that ask what a catalog means.
type Document struct {
	File   string // or the bundle directory
	Bundle bool   // a bundle directory: the other fields are empty
	Line   int    // where the document begins, from 1
	Column int    // above 1 where it stands behind another one, or behind a mark, on the same line
	Size   int    // of its text in bytes

	Schema, Package, Name string
	Raw                   json.RawMessage // keys in the order of the source
}

// Visit calls each for every document and bundle directory that Load would read, in order of file and
// line, one at a time. Templates are no catalog content and are passed over (R-CAT-10). What cannot be
// read is a finding. Memory holds a few documents, whatever the size of the catalog.
func Visit(fsys fs.FS, each func(Document) error) (catalog.Findings, error) {
	w := &walker{fs: fsys}
	if st, err := fs.Stat(fsys, "."); err != nil || !st.IsDir() {
		w.reportf(catalog.SeverityError, ".", "R-CAT-43", "the root of a catalog must be a directory that can be read")
		return w.findings, nil //nolint:nilerr // the finding says it
	}
	w.walk(".", nil, 0)
	if len(w.sources) == 0 && len(w.findings) == 0 {
		w.reportf(catalog.SeverityError, ".", "R-CAT-1", "the directory holds no catalog content")
	}
	v := &visitor{fs: fsys, each: each}
	err := v.visit(w.sources)
	return append(v.findings, w.findings...).Report(), err
}

// HasBundles reports whether Load would read bundle directories, of today's layout or the legacy one. A
// catalog with some of them is more than its documents.
func HasBundles(fsys fs.FS) bool {
	w := &walker{fs: fsys}
	w.walk(".", nil, 0)
	return slices.ContainsFunc(w.sources, func(s source) bool { return s.bundle })
}

// visitor reads documents on all processors, a few ahead of the caller, and hands them over in order.
type visitor struct {
	fs       fs.FS
	each     func(Document) error
	findings catalog.Findings
}

// visited is one document on its way: done is closed when the others are set.
type visited struct {
	chunk    docs.Chunk
	source   source
	end      bool // the last of its file
	done     chan struct{}
	document *Document
	finding  *catalog.Finding
	envelope bool
}

// ahead is how many documents each processor may be ahead of the caller.
const ahead = 4

func (v *visitor) visit(sources []source) error {
	workers := runtime.GOMAXPROCS(0)
	work, queue := make(chan *visited, workers), make(chan *visited, ahead*workers)
	stop := make(chan struct{})
	for range workers {
		go func() {
			for d := range work {
				d.read()
				close(d.done)
			}
		}()
	}
	go func() {
		defer close(queue)
		defer close(work)
		for _, s := range sources {
			if !v.cut(s, work, queue, stop) {
				return
			}
		}
	}()
	err := v.deliver(queue)
	close(stop)
	for d := range queue { // lets the reader end
		<-d.done
	}
	return err
}

// cut sends the documents of one source, and one more that ends it. It returns false when stopped.
func (v *visitor) cut(s source, work, queue chan<- *visited, stop <-chan struct{}) bool {
	send := func(d *visited) error {
		d.source, d.done = s, make(chan struct{})
		select {
		case queue <- d:
			if !d.end {
				work <- d
				return nil
			}
			close(d.done)
			return nil
		case <-stop:
			return ErrStopped
		}
	}
	last := &visited{end: true}
	if s.bundle {
		last.document = &Document{File: s.path, Bundle: true}
		return send(last) == nil
	}
	err := v.split(s, func(c docs.Chunk) error { return send(&visited{chunk: c}) })
	if errors.Is(err, ErrStopped) {
		return false
	}
	if err != nil {
		last.finding, last.envelope = &failedFile(0, s.path, err).findings[0], true
	}
	return send(last) == nil
}

func (v *visitor) split(s source, each func(docs.Chunk) error) error {
	f, err := v.fs.Open(s.path)
	if err != nil {
		return err
	}
	err = docs.Split(f, docLimits(), each)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// read decodes the document.
func (d *visited) read() {
	defer d.chunk.Release()
	fail := func(f catalog.Finding, envelope bool) { d.finding, d.envelope = &f, envelope }
	file := d.source.path
	var parser docs.Parser
	value, derr := parser.Parse(d.chunk, docLimits())
	if derr != nil {
		fail(failedFile(0, file, hint(derr, d.chunk)).findings[0], !looksLikeData(file, d.chunk))
		return
	}
	if !value.Exists() {
		return
	}
	b, f := readBlob(file, value)
	switch {
	case f != nil:
		fail(*f, true)
		return
	case isTemplate(b.schema):
		fail(b.Finding(catalog.SeverityWarning, "R-CAT-10", b.pkg,
			"a template (%s) is no catalog content and is passed over; expand it, or exclude the file in %s", b.schema,
			ignoreFile), true)
		return
	}
	if faults := b.faulty(parser.Faults()); len(faults) > 0 {
		fail(faults[0], false)
		return
	}
	d.document = &Document{
		File: file, Line: d.chunk.Line(), Column: 1, Size: d.chunk.Size(),
		Schema: b.schema, Package: b.owner(), Name: b.name, Raw: value.JSON(),
	}
	if !d.chunk.StartsLine() {
		d.document.Column, d.document.Size = b.Column, len(bytes.TrimLeft(d.chunk.Text(), " \t"))
	}
}

// deliver calls each in order. What is wrong with a file beside bundle directories does not count
// where the file holds no catalog content: such places hold build recipes.
func (v *visitor) deliver(queue <-chan *visited) error {
	var pending catalog.Findings
	content := false
	for d := range queue {
		<-d.done
		if d.document != nil {
			content = true
			if err := v.each(*d.document); err != nil {
				return err
			}
		}
		if d.finding != nil {
			content = content || !d.envelope
			pending = append(pending, *d.finding)
		}
		if !d.end {
			continue
		}
		if content || !d.source.beside {
			v.findings = append(v.findings, pending...)
		}
		pending, content = nil, false
	}
	return nil
}

// Metadata takes the display part of a CSV, as olm.csv.metadata holds it (R-CAT-18).
func Metadata(csv bundle.CSV) json.RawMessage { return metadataOf(csv) }
