package events_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/internal/compactjson"
)

// Every payload is read in the quick form, as it is stored: a type with a field that this form does not know would make
// every replay slower.
func TestPayloadsAreReadQuickly(t *testing.T) {
	t.Parallel()
	for _, d := range events.All() {
		raw, err := os.ReadFile(filepath.Join("testdata", string(d.Type)+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var e events.Envelope
		strict(t, raw, &e)
		payload, err := events.Decode(e)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		if !compactjson.Read(string(stored), reflect.New(reflect.TypeOf(d.Zero())).Interface()) {
			t.Errorf("%s is left to encoding/json: %s", d.Type, stored)
		}
	}
}
