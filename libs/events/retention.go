package events

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"
)

// retentionEvents are the events about what was removed of that which other events refer to, in the order of
// docs/events.md.
func retentionEvents() []Definition {
	return []Definition{
		define(KindRetention, Resolver, DecisionsCollected{},
			"What decisions rested on was removed, since nothing had needed it for the retention."),
		define(KindRetention, Indexer, CatalogsCollected{},
			"Revisions, documents or content of catalogs were removed, since nothing referred to them any more."),
		define(KindRetention, Installer, DriftsCollected{},
			"Differences that drifted operators had were removed, since their retention was over."),
	}
}

// MaxRemovedIDs bounds the ids in one Removed, so that the event stays small; the digest covers all.
const MaxRemovedIDs = 100

// Removed is what one transaction of a collector removed of one kind.
type Removed struct {
	// What is inputs, explanations or plan-documents; revisions, packages, documents, findings or contents; drifts.
	What  string `json:"what"`
	Count int    `json:"count"`
	// Oldest and Newest are when the first and the last of them was stored, or last needed where that is noted (UTC).
	Oldest time.Time `json:"oldest"`
	Newest time.Time `json:"newest"`
	// RetentionDays is the policy by which they went; 0 is as long as the events, so that only what no event refers to
	// goes, such as of a load that failed.
	RetentionDays int `json:"retentionDays,omitempty"`
	// Digest is that of all ids in order of their bytes, each with a line feed behind it.
	Digest string `json:"digest"`
	// IDs are the first of the ids, at most 100: digests, or names of plans.
	IDs []string `json:"ids"`
}

// NewRemoved puts the ids in order and sums them up. keep is the retention, 0 where it has no bound.
func NewRemoved(what string, ids []string, oldest, newest time.Time, keep time.Duration) Removed {
	const day = 24 * time.Hour
	ids = slices.Sorted(slices.Values(ids))
	h := sha256.New()
	for _, id := range ids {
		h.Write([]byte(id + "\n"))
	}
	return Removed{
		What: what, Count: len(ids), Oldest: oldest.UTC(), Newest: newest.UTC(), RetentionDays: int(keep / day),
		Digest: "sha256:" + hex.EncodeToString(h.Sum(nil)), IDs: ids[:min(len(ids), MaxRemovedIDs)],
	}
}

// DecisionsCollected says what of that which decisions rested on was removed. Subject: resolver.
type DecisionsCollected struct {
	Removed Removed `json:"removed"`
}

// EventType implements Payload.
func (DecisionsCollected) EventType() Type { return "retention.decisions-collected.v1" }

// CatalogsCollected says what of catalogs was removed; among it what a load that failed had stored. Subject:
// catalog-indexer.
type CatalogsCollected struct {
	Removed Removed `json:"removed"`
}

// EventType implements Payload.
func (CatalogsCollected) EventType() Type { return "retention.catalogs-collected.v1" }

// DriftsCollected says which differences went that csv.drifted events name. Subject: installer.
type DriftsCollected struct {
	Removed Removed `json:"removed"`
}

// EventType implements Payload.
func (DriftsCollected) EventType() Type { return "retention.drifts-collected.v1" }
