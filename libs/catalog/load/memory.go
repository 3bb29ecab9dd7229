package load

import (
	"bytes"
	"encoding/json"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/docs"
	"github.com/chandler-fleet/chandler/libs/catalog/validate"
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
const decoderVersion = "5\n"

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
	Bundle    *catalog.Bundle     `json:"bundle,omitempty"`
	Package   string              `json:"package,omitempty"`
	Line      int                 `json:"line,omitempty"`
	Column    int                 `json:"column,omitempty"`
	Embedded  bool                `json:"embedded,omitempty"`
	Joins     []string            `json:"joins,omitempty"`
	Preferred string              `json:"preferred,omitempty"`
	Facts     *rememberedCSV      `json:"facts,omitempty"`
	Findings  []rememberedFinding `json:"findings,omitempty"`
}

// rememberedFinding is a finding with what reports leave out, and the end of the load needs.
type rememberedFinding struct {
	catalog.Finding

	ForAuthors bool   `json:"forAuthors,omitempty"`
	Spot       string `json:"spot,omitempty"`
}

type rememberedCSV struct {
	Replaces    string              `json:"replaces,omitempty"`
	SkipRange   string              `json:"skipRange,omitempty"`
	Description string              `json:"description,omitempty"`
	Skips       []string            `json:"skips,omitempty"`
	Icon        *validate.IconDraft `json:"icon,omitempty"`
}

// recall returns what decode returns, from memory where it is there. keyOf digests the text, and at is
// where it stands.
// Decode says whether its outcome is all that there is to know of the text.
func (m memory) recall(keyOf func() digest.Digest, at validate.Place,
	decode func() (*validate.BundleDraft, []catalog.Finding, bool),
) (*validate.BundleDraft, []catalog.Finding) {
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
func (m memory) keep(key digest.Digest, at validate.Place, d *validate.BundleDraft, findings []catalog.Finding) {
	var r remembered
	var content digest.Digest
	if d != nil {
		r = remembered{
			Bundle: &d.Bundle, Package: d.Package, Line: d.Line - at.Line, Column: d.Column,
			Embedded: d.Embedded, Joins: d.Joins, Preferred: d.Preferred,
		}
		content = d.Bundle.Content
		if c := d.CSV; c != nil {
			r.Facts = &rememberedCSV{c.Replaces, c.SkipRange, c.Description, c.Skips, c.Icon}
		}
	}
	for _, f := range findings {
		f.File = f.File[min(len(at.File), len(f.File)):]
		if at.Line > 0 {
			f.Line -= at.Line
		}
		r.Findings = append(r.Findings, rememberedFinding{f, f.ForAuthors, f.Spot})
	}
	value, err := json.Marshal(r)
	if err == nil {
		err = m.Remember(key, content, value)
	}
	if err != nil {
		m.fail(err)
	}
}

func (r remembered) restore(at validate.Place) (*validate.BundleDraft, []catalog.Finding) {
	var findings []catalog.Finding
	for _, kept := range r.Findings {
		f := kept.Finding
		f.ForAuthors, f.Spot = kept.ForAuthors, kept.Spot
		f.File = at.File + f.File
		if at.Line > 0 {
			f.Line += at.Line
		}
		findings = append(findings, f)
	}
	if r.Bundle == nil {
		return nil, findings
	}
	where := validate.Place{File: at.File, Line: at.Line + r.Line, Column: r.Column}
	d := &validate.BundleDraft{
		Place: where, Package: r.Package, Bundle: *r.Bundle, Embedded: r.Embedded,
		Joins: r.Joins, Preferred: r.Preferred,
	}
	if at.Line == 0 {
		d.Dir = at.File
	}
	if f := r.Facts; f != nil {
		d.CSV = &validate.CSVFacts{
			Replaces: f.Replaces, SkipRange: f.SkipRange, Description: f.Description,
			Skips: f.Skips, Icon: f.Icon,
		}
	}
	return d, findings
}

// remembers reports whether a document of a file may be a bundle that is worth remembering.
func (m memory) remembers(c docs.Chunk) bool {
	return m.Memory != nil && c.Size() >= memorable && c.StartsLine() &&
		bytes.Contains(c.Text(), []byte(catalog.TypeBundleObject))
}
