package fbc

import "encoding/json"

// Blob is one document. Raw is the whole of it as one JSON object, in canonical form or as it came.
type Blob struct {
	Schema  string
	Package string // of olm.package: its own name
	Name    string
	Raw     json.RawMessage
}
