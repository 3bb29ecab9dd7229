// Package preview is what the gateway keeps of a preview: the intents that were asked about, the events that they came
// to when they were tried, and whether they were carried out. It is pure.
//
//	asked   → the intents are tried and taken back; what they came to is kept, and put to the resolver
//	applied → they run again, together; where they come to the same events on the same states, they stay
package preview

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Kept is a preview as it is kept until it expires.
type Kept struct {
	Tenant   string
	ID       uuid.UUID
	Actor    string
	Asked    time.Time
	Expires  time.Time
	Request  model.PreviewRequest
	Validate model.Validate
	Writes   []Write
	// NotApplicable is why it cannot be carried out; "" where it can.
	NotApplicable string
	// Warnings are what was warned of when it was asked; they are answered once and not kept.
	Warnings []string
	// Bodies are commitments that nothing else has, until it is carried out.
	Bodies []string

	AppliedAt time.Time // zero before
	AppliedBy string
	Done      []Done
}

// Write is what one intent came to.
type Write struct {
	Subject    string                  `json:"subject"`
	Stream     string                  `json:"stream"`
	Before     string                  `json:"before"`     // digest of the state that was decided on
	Hypotheses []previewapi.Hypothesis `json:"hypotheses"` // none where nothing changes
}

// Done is an event that carried a preview out.
type Done struct {
	Subject string `json:"subject"`
	Stream  string `json:"stream"`
	Version int64  `json:"version"`
}

// Same says whether an intent comes to what it came to before, on the same state.
func (w Write) Same(o Write) bool {
	if w.Subject != o.Subject || w.Stream != o.Stream || w.Before != o.Before ||
		len(w.Hypotheses) != len(o.Hypotheses) {
		return false
	}
	for i, h := range w.Hypotheses {
		if x := o.Hypotheses[i]; h.Type != x.Type || !sameJSON(h.Data, x.Data) {
			return false
		}
	}
	return true
}

// sameJSON compares values, since a database writes JSON in its own way.
func sameJSON(a, b json.RawMessage) bool {
	x, err := digest.Canonical(a)
	y, err2 := digest.Canonical(b)
	return err == nil && err2 == nil && bytes.Equal(x, y)
}

// Changed names what is another thing than when the preview was asked for; nothing where all is the same.
func (k Kept) Changed(now []Write) []string {
	var out []string
	for i, w := range k.Writes {
		if i >= len(now) || !w.Same(now[i]) {
			out = append(out, w.Subject)
		}
	}
	return out
}

// Actions in the audit.
const (
	ActionPreview     = "preview"
	ActionRead        = "preview.read"
	ActionApply       = "preview.apply"
	ActionShadow      = "shadow"
	ActionTokenAdd    = "token.add"
	ActionIdentity    = "identity.configure"
	ActionTokenRotate = "token.rotate"
	ActionTokenRevoke = "token.revoke"
	// ActionParkedRetry and ActionParkedSkip: somebody had parked events tried again, or skipped one.
	ActionParkedRetry = "log.parked.retry"
	ActionParkedSkip  = "log.parked.skip"
	// ActionDrain and ActionUndrain: somebody had a replica of the installer give its clusters away, or take some
	// again.
	ActionDrain   = "replica.drain"
	ActionUndrain = "replica.undrain"
)

// Asked says who asked what and when.
type Asked struct {
	Tenant  string
	ID      uuid.UUID
	At      time.Time
	Actor   string
	Action  string
	About   string
	Preview uuid.UUID // zero where it is about none
	Via     string    // service account through which the actor asked; "" without one
}
