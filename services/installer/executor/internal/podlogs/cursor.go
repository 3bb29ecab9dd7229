// Package podlogs answers what pods of installed operators have written (protocol.LogQuestion): those of the
// Deployments that Chandler installed, and of nothing else. Each answer is bounded, says where it ended, and leaves
// nothing out without saying so. Nothing is kept of what was read.
package podlogs

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// position is how far the log of one container was read. The API takes a time in whole seconds to begin at, and several
// lines may bear one time, so that both are needed.
type position struct {
	// at is the time of the last line that was read; zero before the first.
	at time.Time
	// lines is how many lines of exactly that time were read.
	lines int
	// restarts is how often the container had been restarted then.
	restarts int32
}

// cursor is where an answer ended, by container.
type cursor map[string]position

const (
	cursorVersion = "1"
	entrySign     = "_"
	partSign      = "-"
	entryParts    = 4
	numberBase    = 36
	// keyBytes tells the few containers of an operator apart.
	keyBytes = 6
)

// keyOf stands for a container of a pod in a cursor, and is short.
func keyOf(podUID, container string) string {
	sum := sha256.Sum256([]byte(podUID + "\x00" + container))
	return hex.EncodeToString(sum[:keyBytes])
}

// String is the text for the next question.
func (c cursor) String() string {
	entries := []string{cursorVersion}
	for key, p := range c {
		nanos := int64(0)
		if !p.at.IsZero() {
			nanos = p.at.UnixNano()
		}
		entries = append(entries, strings.Join([]string{
			key, strconv.FormatInt(nanos, numberBase), strconv.Itoa(p.lines), strconv.Itoa(int(p.restarts)),
		}, partSign))
	}
	return strings.Join(entries, entrySign)
}

// parseCursor reads what String has written; "" is the beginning.
func parseCursor(text string) (cursor, error) {
	c := cursor{}
	if text == "" {
		return c, nil
	}
	wrong := errs.New(errs.Invalid, "the position is none of an answer about logs: give that of the answer before").
		At("query.after", "cursor")
	entries := strings.Split(text, entrySign)
	if len(text) > protocol.MaxLogCursor || entries[0] != cursorVersion ||
		len(entries) > protocol.MaxLogContainers+1 {
		return nil, wrong
	}
	for _, e := range entries[1:] {
		parts := strings.Split(e, partSign)
		if len(parts) != entryParts {
			return nil, wrong
		}
		nanos, err1 := strconv.ParseInt(parts[1], numberBase, 64)
		lines, err2 := strconv.ParseUint(parts[2], 10, 31)
		restarts, err3 := strconv.ParseUint(parts[3], 10, 31)
		if err1 != nil || err2 != nil || err3 != nil || nanos < 0 {
			return nil, wrong
		}
		p := position{lines: int(lines), restarts: int32(restarts)}
		if nanos > 0 {
			p.at = time.Unix(0, nanos).UTC()
		}
		c[parts[0]] = p
	}
	return c, nil
}
