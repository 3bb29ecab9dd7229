package protocol

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// RepeatPrefix is where the hub asks the executor of a cluster to write its reports again: <prefix>.<tenant>.<cluster>,
// without a body or an answer. Whoever forges one has reports repeated, which an executor bounds.
const RepeatPrefix = "chandler.repeat"

// RepeatSubject is where the executor of a cluster is asked to write its reports again.
func RepeatSubject(tenant, clusterID string) string {
	return strings.Join([]string{RepeatPrefix, tenant, clusterID}, ".")
}

// Entry stands for one report in a ReportSet: a SHA-256 over its subject and its bytes, in which are its session and
// its number. As text it is hexadecimal.
type Entry [sha256.Size]byte

// entryType is the first line of what an entry is the hash of.
const entryType = "chandler.report-entry.v1"

// EntryOf is the entry of a report that is written to a subject.
func EntryOf(subject string, body []byte) Entry {
	h := sha256.New()
	_, _ = h.Write([]byte(entryType + "\n" + subject + "\n" + strconv.Itoa(len(body)) + "\n")) // never fails
	_, _ = h.Write(body)
	var e Entry
	h.Sum(e[:0])
	return e
}

// MarshalText implements encoding.TextMarshaler.
func (e Entry) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, e[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (e *Entry) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(e)) {
		return errs.New(errs.Invalid, "a digest of %d characters, want %d", len(text), hex.EncodedLen(len(e)))
	}
	_, err := hex.Decode(e[:], text)
	return errs.Wrap(errs.Invalid, err, "read a digest")
}

// ReportSet is a digest over the newest reports of the namespaces of a cluster. Two sets are equal where they have the
// same reports, in whatever order these came.
//
// Sum is the exclusive or of the entries: who records a report brings the set up to date from the entry that goes and
// the one that comes, and reads no other. A namespace has one entry, so that none cancels itself out. Sets that differ
// and have one sum can be made by somebody who chooses hundreds of entries; but whoever signs the set signs the
// reports, and could as well leave them out.
type ReportSet struct {
	Count int   `json:"count"`
	Sum   Entry `json:"sum"`
}

// Add puts a report into the set, in which no other one of its namespace is.
func (s *ReportSet) Add(e Entry) {
	s.Count++
	s.toggle(e)
}

// Remove takes a report out that is in the set.
func (s *ReportSet) Remove(e Entry) {
	s.Count--
	s.toggle(e)
}

func (s *ReportSet) toggle(e Entry) {
	for i := range s.Sum {
		s.Sum[i] ^= e[i]
	}
}
