package service

import (
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Retention is the one statement of how long that is kept which events refer to and which is not in the log itself:
// inputs of decisions, documents of plans, explanations, revisions and content of catalogs, differences of drifted
// operators. The log keeps every event,
// so that by default all of it is kept as long: a replay that the documents promise never ends in "not found".
type Retention struct {
	// Keep is how long it is kept after it was last needed; 0 is for as long as the log keeps its events.
	Keep time.Duration
	// LegalHold keeps everything, whatever Keep says.
	LegalHold bool
}

// LeastRetention is the least that Keep may be: a year that an audit looks back on, and a month to do it in.
const LeastRetention = 400 * 24 * time.Hour

// Settings declares the settings; every service that removes something has the same ones.
func (r *Retention) Settings(s *Settings) {
	s.Duration(&r.Keep, "retention", 0, "how long inputs of decisions, documents and catalogs are kept after they were "+
		"last needed, at least 9600h; 0 keeps them as long as the events")
	s.Bool(&r.LegalHold, "legal-hold", false, "remove nothing that events refer to, whatever the retention is")
}

// Check refuses a retention under which an audit would find things missing.
func (r *Retention) Check() error {
	if r.Keep != 0 && r.Keep < LeastRetention {
		return errs.New(errs.Invalid, "the retention is %s; give at least %s (400 days), or 0 to keep everything as long "+
			"as the events", r.Keep, LeastRetention).At("retention", "")
	}
	return nil
}

// Period is how long things are kept that events refer to; 0 is as long as the events.
func (r *Retention) Period() time.Duration {
	if r.LegalHold {
		return 0
	}
	return r.Keep
}
