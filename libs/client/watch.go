package client

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
)

// What becomes of an object of a list that is watched.
const (
	Added    = "ADDED"    // Data is the object
	Modified = "MODIFIED" // Data is the object
	Deleted  = "DELETED"  // Data is its name: id, cluster, namespace, name
	// Reset says that what is known of the list is to be forgotten, unless it comes as Added before the next Bookmark.
	// Each stream after the first begins with it. Data is {}.
	Reset    = "RESET"
	Bookmark = "BOOKMARK" // everything that happened up to Position was told
	failed   = "ERROR"
)

// WatchEndedError says that the gateway ended a watch for good, as that of a list with too many objects; the list
// itself can still be asked for.
type WatchEndedError struct{ Detail string }

func (e *WatchEndedError) Error() string { return "the gateway ended the watch: " + e.Detail }

// Change is one message of a list that is watched.
type Change struct {
	Type     string
	Data     json.RawMessage
	Position string // of a Bookmark
}

// Watch calls each for what is in a list and then for what changes in it, and opens the stream again where it broke
// off, until ctx ends (nil), each fails or the gateway refuses. The request is that of a list, such as
// NewListOperatorsRequest makes, without limit, cursor and sort; one that cannot be watched is refused with the status
// 400. after is the position of a Bookmark that the caller has objects of, or "". lost, when not nil, is told of every
// break.
func (c *Client) Watch(
	ctx context.Context, list Request, after string, each func(Change) error, lost func(error), opts ...Option,
) error {
	list.Query = maps.Clone(list.Query)
	if list.Query == nil {
		list.Query = url.Values{}
	}
	list.Query.Set("watch", "true")
	told, anew := false, false // something; on a connection before this one, from which the gateway cannot go on
	request := func() Request {
		anew = told && after == ""
		return list
	}
	return c.follow(ctx, request, &after, func(m Message) error {
		switch {
		case anew:
			anew = false
			if err := each(Change{Type: Reset, Data: json.RawMessage("{}")}); err != nil {
				return err
			}
		case m.Type == failed:
			return &WatchEndedError{detailOf(m.Data)} // no attempt follows the error of a caller
		}
		if m.Type == "" { // nothing but that the stream is alive
			return nil
		}
		told = true
		change := Change{Type: m.Type, Data: m.Data}
		if m.Type == Bookmark {
			change.Position = m.Position
		}
		return each(change)
	}, lost, opts)
}

// detailOf is what a message says of why a stream ends.
func detailOf(data []byte) string {
	var said struct {
		Detail string `json:"detail"`
	}
	if err := json.Unmarshal(data, &said); err != nil || said.Detail == "" {
		return string(data)
	}
	return said.Detail
}
