package record

import "time"

const (
	// HolderSpeaks is for how long after a holder was heard nobody else is believed. Executors repeat their reports every
	// 15 seconds; one repetition may be lost.
	HolderSpeaks = 30 * time.Second
	// HolderWentBack is how long a holder of a lower epoch has to be heard without a break, and the one of the highest not
	// at all, until the lower one is believed: etcd of the cluster was restored from a backup, with the lease and the fence,
	// so that epochs begin again below those that were seen. A holder that was merely paused learns within seconds that it
	// was replaced, and is heard no more.
	HolderWentBack = 2 * time.Minute
)

// Holder is who holds a cluster, as far as its reports tell.
type Holder struct {
	Epoch int64 // the highest that was seen, since epochs went back the last time
	Back  Back
}

// Back is what is known of epochs that went back.
type Back struct {
	// Epoch is a lower one that is heard, by reports made between First and Last.
	Epoch int64     `json:"epoch,omitempty"`
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Begun is when the present line of epochs was heard first: whatever was reported before is of a former one.
	Begun time.Time `json:"begun,omitzero"`
}

// Heard is what becomes of a report.
type Heard int

// What becomes of a report: it counts; it does not, now or ever; it does, and epochs have gone back.
const (
	HeardHolder Heard = iota
	HeardOther
	HeardFormer
	HeardRestored
)

// Hear says whether a report comes from who holds the cluster. held is set for the reports of a holder about its cluster
// while it can reach it; speaks while the one of the highest epoch was heard a moment ago.
//
//	made before the present line of epochs began           HeardFormer
//	of the highest epoch, or a higher one                  HeardHolder
//	lower, while the highest is heard, or not held         HeardOther
//	lower, heard for HolderWentBack without a break        HeardRestored: its epoch is the highest from now on
//	lower, not for so long                                 HeardOther
func (h Holder) Hear(epoch int64, reported time.Time, held, speaks bool) (Holder, Heard) {
	b := &h.Back
	switch {
	case reported.Before(b.Begun):
		return h, HeardFormer
	case epoch >= h.Epoch:
		h.Epoch = epoch
		b.Epoch = 0
		return h, HeardHolder
	case speaks:
		b.Epoch = 0
		return h, HeardOther
	case !held || b.Epoch != 0 && !reported.After(b.Last):
		return h, HeardOther // a last value that is read again says nothing new
	case b.Epoch == 0 || epoch < b.Epoch || reported.Sub(b.Last) > HolderSpeaks:
		b.First = reported
	}
	b.Epoch, b.Last = epoch, reported
	if b.Last.Sub(b.First) < HolderWentBack {
		return h, HeardOther
	}
	return Holder{Epoch: epoch, Back: Back{Begun: b.First}}, HeardRestored
}
