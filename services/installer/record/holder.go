package record

import "time"

const (
	// DefaultHeartbeat is how often a holder writes the report of its cluster that does not say, or says less.
	DefaultHeartbeat = 15 * time.Second
	// MaxHeartbeat bounds what is believed of that: a holder that is gone counts as there for two heartbeats.
	MaxHeartbeat = 5 * time.Minute
	// ClockTolerance is how far ahead of the database's clock a time may be that the database itself wrote: after a
	// fail-over another machine's clock counts. What lies further ahead was written before the clock was set back: it
	// counts as long ago.
	ClockTolerance = 5 * time.Second
)

// Holder is the hold that is registered of a cluster. Its zero value is none.
type Holder struct {
	Epoch   int64
	Session string
}

// Claim is what a report says of its sender.
type Claim struct {
	Epoch    int64
	Session  string // by which the report is signed
	Sequence int64
}

// Known is what is known of the session of a report.
type Known struct {
	Epoch    int64 // that it registered last, 0 for none
	Sequence int64 // of its last report that was taken; 0 where the report has an order of its own
}

// Sender classifies who sent a report.
type Sender int

// Reports of the holder are recorded. Those of another sender are ignored now, those of a former holder, and those that
// were overtaken, for ever. One of an epoch that the session never registered is refused.
const (
	SenderHolder Sender = iota
	SenderOther
	SenderFormer
	SenderUnregistered
)

// Classify decides who sent a report. speaks is set while the holder was heard within HolderTimeout.
//
//	an epoch above what its session registered             SenderUnregistered
//	older than what was taken of its session               SenderFormer
//	of the hold that is registered                         SenderHolder
//	without an epoch, while the holder speaks              SenderOther: who cannot reach the cluster may be the only one
//	without an epoch, else                                 SenderHolder
//	of another epoch or session                            SenderFormer
func (h Holder) Classify(c Claim, k Known, speaks bool) Sender {
	switch {
	case c.Epoch < 0 || c.Epoch > k.Epoch:
		return SenderUnregistered
	case c.Sequence < k.Sequence:
		return SenderFormer
	case c.Epoch == 0 && speaks:
		return SenderOther
	case c.Epoch == 0, c.Epoch == h.Epoch && c.Session == h.Session:
		return SenderHolder
	}
	return SenderFormer
}

// Heartbeat is how often a holder writes the report of its cluster, as far as what it says of that is believed.
func Heartbeat(seconds int) time.Duration {
	if seconds > int(MaxHeartbeat/time.Second) {
		return MaxHeartbeat
	}
	return max(DefaultHeartbeat, time.Duration(seconds)*time.Second)
}

// HolderTimeout is for how long after a holder's report no other session is accepted: one heartbeat may be lost.
func HolderTimeout(heartbeat time.Duration) time.Duration { return 2 * heartbeat }

// Speaks reports whether a holder with a heartbeat that was heard at a time counts as heard of now; ahead is set where
// that time lies in the future: the clock of the database was set back.
func Speaks(heard, now time.Time, heartbeat time.Duration) (speaks, ahead bool) {
	if heard.After(now.Add(ClockTolerance)) {
		return false, true
	}
	return now.Sub(heard) < HolderTimeout(heartbeat), false
}
