package eventlog

import (
	"bytes"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/internal/compactjson"
)

// dataField is what comes before the payload, which is the last field of an envelope. It cannot be a part of a string
// before it, since quotes in strings are escaped.
var dataField = []byte(`,"data":`)

// readEnvelope reads the bytes of an envelope in the one form in which Append writes them, into an empty envelope. It
// reports false for any other form, which encoding/json may read. The payload is cut out, not read.
func readEnvelope(body []byte, e *events.Envelope) bool {
	header, data, found := bytes.Cut(body, dataField)
	if !found || !bytes.HasPrefix(data, []byte("{")) || !bytes.HasSuffix(data, []byte("}}")) {
		return false
	}
	end := len(data) - 1
	e.Data = data[:end:end]
	return compactjson.Read(string(header)+"}", e)
}
