package bus

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// apiStreamInfo is the subject of the request for a stream's state; the name of the stream follows.
const apiStreamInfo = jetstream.DefaultAPIPrefix + "STREAM.INFO."

// subjectsTimeout bounds one page: the server sorts all subjects of the stream for it.
const subjectsTimeout = 30 * time.Second

// subjectsPage is the part of the server's answer that Subjects reads. Total counts the subjects of all pages.
type subjectsPage struct {
	Error *jetstream.APIError `json:"error"`
	Total int                 `json:"total"`
	State struct {
		LastSeq  uint64            `json:"last_seq"`
		Subjects map[string]uint64 `json:"subjects"`
	} `json:"state"`
}

// Subjects gives the subjects of a stream that match a filter to fn, a page at a time in the server's order (100,000
// at most), so that nobody holds them all. last is the sequence of the stream's last message before the first page
// was read. A subject that is new or purged meanwhile may be left out.
func (b *Bus) Subjects(ctx context.Context, kind, filter string, fn func(page map[string]uint64) error) (
	last uint64, err error,
) {
	for offset, first := 0, true; ; first = false {
		p, err := b.subjectsPage(ctx, kind, filter, offset)
		if err != nil {
			return last, err
		}
		if first {
			last = p.State.LastSeq
		}
		if len(p.State.Subjects) == 0 {
			return last, nil
		}
		if err := fn(p.State.Subjects); err != nil {
			return last, err
		}
		if offset += len(p.State.Subjects); offset >= p.Total {
			return last, nil
		}
	}
}

func (b *Bus) subjectsPage(ctx context.Context, kind, filter string, offset int) (p subjectsPage, err error) {
	name := b.StreamName(kind)
	request, err := json.Marshal(map[string]any{"subjects_filter": filter, "offset": offset})
	if err != nil {
		return p, err
	}
	ctx, cancel := context.WithTimeout(ctx, subjectsTimeout)
	defer cancel()
	m, err := b.conn.RequestWithContext(ctx, apiStreamInfo+name, request)
	if err != nil {
		return p, unavailable(err, "read the subjects of stream %s", name)
	}
	if err := json.Unmarshal(m.Data, &p); err != nil {
		return p, errs.Wrap(errs.Internal, err, "read the subjects of stream %s", name)
	}
	if p.Error != nil {
		return p, unavailable(p.Error, "read the subjects of stream %s", name)
	}
	return p, nil
}
