package record

import "time"

const (
	// HolderTimeout is for how long after a holder's report no other sender is accepted. Executors repeat their reports
	// every 15 seconds; one repetition may be lost.
	HolderTimeout = 30 * time.Second
	// EpochResetAfter is for how long a sender of a lower epoch has to report without a gap, and the holder of the
	// highest epoch not at all, until the lower one is accepted. That is so after the cluster's etcd was restored from
	// a backup: the lease and the fence are restored, too, and epochs begin again below those that were seen. A holder
	// that was merely paused learns within seconds that it was replaced, and stops reporting.
	EpochResetAfter = 2 * time.Minute
)

// Holder is the holder of a cluster's lease, as far as its reports show.
type Holder struct {
	Epoch int64 // the highest seen since the last reset
	Reset EpochReset
}

// EpochReset tracks whether epochs began again at a lower number.
type EpochReset struct {
	// Epoch is a lower one that reports, with the times of its first and last report.
	Epoch int64     `json:"epoch,omitempty"`
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Since is the first report after the last reset: reports made before belong to the time before it.
	Since time.Time `json:"begun,omitzero"`
}

// Sender classifies who sent a report.
type Sender int

// Reports of the holder are recorded. Those of another sender are ignored now, those of a former holder for ever. Those
// of a restored holder are recorded, and its epoch becomes the highest.
const (
	SenderHolder Sender = iota
	SenderOther
	SenderFormer
	SenderRestored
)

// Classify decides who sent a report. held is set for reports about a cluster by an executor that can reach it; alive
// while the holder of the highest epoch reported within HolderTimeout.
//
//	made before the last reset of epochs                   SenderFormer
//	of the highest epoch, or a higher one                  SenderHolder
//	lower, while the highest is alive, or not held         SenderOther
//	lower, without a gap for EpochResetAfter               SenderRestored: its epoch is the highest from now on
//	lower, not for so long                                 SenderOther
func (h Holder) Classify(epoch int64, reported time.Time, held, alive bool) (Holder, Sender) {
	b := &h.Reset
	switch {
	case reported.Before(b.Since):
		return h, SenderFormer
	case epoch >= h.Epoch:
		h.Epoch = epoch
		b.Epoch = 0
		return h, SenderHolder
	case alive:
		b.Epoch = 0
		return h, SenderOther
	case !held || b.Epoch != 0 && !reported.After(b.Last):
		return h, SenderOther // the same report, read again
	case b.Epoch == 0 || epoch < b.Epoch || reported.Sub(b.Last) > HolderTimeout:
		b.First = reported
	}
	b.Epoch, b.Last = epoch, reported
	if b.Last.Sub(b.First) < EpochResetAfter {
		return h, SenderOther
	}
	return Holder{Epoch: epoch, Reset: EpochReset{Since: b.First}}, SenderRestored
}
