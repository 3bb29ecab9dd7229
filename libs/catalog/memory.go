package catalog

import (
	"bytes"
	"encoding/json"

	"github.com/chandler-fleet/chandler/libs/catalog/internal/docs"
	"github.com/chandler-fleet/chandler/libs/digest"
)

// Memory remembers what a bundle was decoded to, by a digest of the text that it was decoded from, so
// that a load after a small change reads and compares everything, and decodes only what is new. It may
// forget at any time. Its methods are called from several goroutines.
type Memory interface {
	// Recall returns what was remembered under a key, nil where there is nothing. It must return nil where
	// the content that the value names is not stored any more.
	Recall(key digest.Digest) ([]byte, error)
	// Remember keeps a value that names content ("" for none), which was handed to Options.Keep before.
	Remember(key, content digest.Digest, value []byte) error
}

// decoderVersion is part of every key: raise it with any change of what bundles are decoded to.
const decoderVersion = "4\n"

// memorable is from how many bytes on a document is worth remembering: below, decoding costs no more
// than asking. Documents without manifests are decoded faster than any memory could be.
const memorable = 16 << 10

// memory adds to a Memory what a load needs; the zero value remembers nothing.
type memory struct {
	Memory
	fail func(error) // ends the load
}

// remembered is a bundle with what was found in it. Places are relative to where it stands.
type remembered struct {
	Bundle    *Bundle        `json:"bundle,omitempty"`
	Package   string         `json:"package,omitempty"`
	Line      int            `json:"line,omitempty"`
	Column    int            `json:"column,omitempty"`
	Embedded  bool           `json:"embedded,omitempty"`
	Joins     []string       `json:"joins,omitempty"`
	Preferred string         `json:"preferred,omitempty"`
	Facts     *rememberedCSV `json:"facts,omitempty"`
	Findings  []Finding      `json:"findings,omitempty"`
}

type rememberedCSV struct {
	Replaces    string    `json:"replaces,omitempty"`
	SkipRange   string    `json:"skipRange,omitempty"`
	Description string    `json:"description,omitempty"`
	Skips       []string  `json:"skips,omitempty"`
	Icon        *iconBody `json:"icon,omitempty"`
}

// recall returns what decode returns, from memory where it is there. keyOf digests the text, and at is
// where it stands.
// Decode says whether its outcome is all that there is to know of the text.
func (m memory) recall(keyOf func() digest.Digest, at place, decode func() (*bundleDraft, []Finding, bool)) (*bundleDraft, []Finding) {
	if m.Memory == nil {
		d, findings, _ := decode()
		return d, findings
	}
	key := digest.Bytes([]byte(decoderVersion + string(keyOf())))
	value, err := m.Recall(key)
	if err != nil {
		m.fail(err)
		return nil, nil
	}
	var r remembered
	if value != nil && json.Unmarshal(value, &r) == nil {
		return r.restore(at)
	}
	d, findings, whole := decode()
	if whole {
		m.keep(key, at, d, findings)
	}
	return d, findings
}

// keep remembers the outcome of decode.
func (m memory) keep(key digest.Digest, at place, d *bundleDraft, findings []Finding) {
	var r remembered
	var content digest.Digest
	if d != nil {
		r = remembered{Bundle: &d.bundle, Package: d.pkg, Line: d.line - at.line, Column: d.column, Embedded: d.embedded, Joins: d.joins, Preferred: d.preferred}
		content = d.bundle.Content
		if c := d.csv; c != nil {
			r.Facts = &rememberedCSV{c.replaces, c.skipRange, c.description, c.skips, c.icon}
		}
	}
	for _, f := range findings {
		f.File = f.File[min(len(at.file), len(f.File)):]
		if at.line > 0 {
			f.Line -= at.line
		}
		r.Findings = append(r.Findings, f)
	}
	value, err := json.Marshal(r)
	if err == nil {
		err = m.Remember(key, content, value)
	}
	if err != nil {
		m.fail(err)
	}
}

func (r remembered) restore(at place) (*bundleDraft, []Finding) {
	for i := range r.Findings {
		f := &r.Findings[i]
		f.File = at.file + f.File
		if at.line > 0 {
			f.Line += at.line
		}
	}
	if r.Bundle == nil {
		return nil, r.Findings
	}
	where := place{file: at.file, line: at.line + r.Line, column: r.Column}
	d := &bundleDraft{place: where, pkg: r.Package, bundle: *r.Bundle, embedded: r.Embedded, joins: r.Joins, preferred: r.Preferred}
	if at.line == 0 {
		d.dir = at.file
	}
	if f := r.Facts; f != nil {
		d.csv = &csvFacts{replaces: f.Replaces, skipRange: f.SkipRange, description: f.Description, skips: f.Skips, icon: f.Icon}
	}
	return d, r.Findings
}

// remembers reports whether a document of a file may be a bundle that is worth remembering.
func (m memory) remembers(c docs.Chunk) bool {
	return m.Memory != nil && c.Size() >= memorable && c.StartsLine() && bytes.Contains(c.Text(), []byte(TypeBundleObject))
}
