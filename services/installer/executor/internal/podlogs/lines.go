package podlogs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

const (
	// maxScan bounds what is read of one log for one answer: lines that were told already are read again, since a log
	// begins at a whole second.
	maxScan = 8 << 20
	// maxProblem bounds the text of the API server or of a kubelet that is passed on.
	maxProblem = 1 << 10
)

// part is what was read of one log.
type part struct {
	lines    []byte
	problem  string
	more     bool
	position position
	// again says that the problem may be gone the next time.
	again bool
}

// readLines takes the lines behind a position, as many as there is room for. A last line without an end is one that is
// being written, and left for the next time, unless the log has ended.
func readLines(log io.Reader, from position, room int, ended bool) (part, error) {
	p := part{position: from}
	scanned := &io.LimitedReader{R: log, N: maxScan}
	r := bufio.NewReaderSize(scanned, protocol.MaxLogLine)
	again := 0 // lines of the time of the position that have come again
	for {
		line, whole, err := nextLine(r)
		if len(line) > 0 && (whole || ended && scanned.N > 0) {
			at, ok := timeOf(line)
			switch {
			case !ok: // what a kubelet says of a log that it cannot read has no time
				p.problem = clip(line, maxProblem)
			case at.Before(from.at):
			case at.Equal(from.at) && !from.at.IsZero() && again < from.lines:
				again++
			case len(p.lines)+len(line) >= room:
				p.more = true
				return p, nil
			default:
				p.take(line, at)
			}
		}
		switch {
		case err == nil:
		case !errors.Is(err, io.EOF):
			return p, err
		case scanned.N > 0:
			return p, nil
		default:
			p.beyondScan(from)
			return p, nil
		}
	}
}

func (p *part) take(line []byte, at time.Time) {
	p.lines = append(append(p.lines, line...), '\n')
	if at.Equal(p.position.at) {
		p.position.lines++
	} else {
		p.position.at, p.position.lines = at, 1
	}
}

// beyondScan ends a part at the bound of what is read. Where all of that was told before, the rest of the second is
// left out: the log would begin there again and again.
func (p *part) beyondScan(from position) {
	p.more = true
	if p.position != from || from.at.IsZero() {
		return
	}
	p.position.at, p.position.lines = from.at.Truncate(time.Second).Add(time.Second), 0
	p.problem = fmt.Sprintf("more than %d MiB were written within one second: the rest of it is left out", maxScan>>20)
}

// nextLine returns a line without its end, cut at MaxLogLine, and whether its end was there.
func nextLine(r *bufio.Reader) (line []byte, whole bool, err error) {
	read, err := r.ReadSlice('\n')
	line = bytes.Clone(read)
	cut := 0
	for errors.Is(err, bufio.ErrBufferFull) {
		read, err = r.ReadSlice('\n')
		cut += len(read)
	}
	if whole = err == nil; whole && cut == 0 {
		line = line[:len(line)-1]
	}
	if cut > 0 {
		line = fmt.Appendf(line, " … (%d bytes more)", cut)
	}
	return line, whole, err
}

// timeOf is the time that the kubelet puts before a line.
func timeOf(line []byte) (time.Time, bool) {
	text, _, found := bytes.Cut(line, []byte(" "))
	if !found {
		text = line
	}
	at, err := time.Parse(time.RFC3339Nano, string(text))
	return at.UTC(), err == nil
}

// clip cuts a text of others.
func clip(text []byte, most int) string {
	if len(text) <= most {
		return string(text)
	}
	return string(bytes.ToValidUTF8(text[:most], nil)) + "…"
}
