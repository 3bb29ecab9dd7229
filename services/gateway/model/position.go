package model

import (
	"strconv"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
)

// StreamVersion names an event by its place in its stream, for a write whose position was not known
// in time: stream@version.
func StreamVersion(s events.StreamID, version int64) string {
	return s.String() + "@" + strconv.FormatInt(version, 10)
}

// Place is what minPosition names: a position, or an event by its place in its stream.
type Place struct {
	Position events.Position // zero where Stream is given
	Stream   events.StreamID
	Version  int64
}

// ParsePlace reads both forms of minPosition.
func ParsePlace(s string) (Place, error) {
	if stream, version, ok := strings.Cut(s, "@"); ok {
		id, err := events.ParseStreamID(stream)
		n, err2 := strconv.ParseInt(version, 10, 64)
		if err == nil && err2 == nil && n > 0 {
			return Place{Stream: id, Version: n}, nil
		}
	} else if pos, err := events.ParsePosition(s); err == nil {
		return Place{Position: pos}, nil
	}
	return Place{}, errs.New(errs.Invalid, "%q is not a position: want epoch-number, such as 1-42, or stream@version",
		s)
}

// Bundles writes planned bundles as the API does.
func Bundles(in []events.PlannedBundle) []PlannedBundle {
	out := make([]PlannedBundle, len(in))
	for i, b := range in {
		out[i] = PlannedBundle(b)
	}
	return out
}
