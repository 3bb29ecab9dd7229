package catalogs

import (
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestRawBlobs: R-CAT-8: --raw writes the documents byte for byte, each on lines of its own.
func TestRawBlobs(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	a := &command.Env{Streams: command.Streams{Out: &out}}
	if err := rawBlobs(a, []model.Blob{{Body: []byte("{\"a\":  1}")}, {Body: []byte("b: 2")}}); err != nil ||
		out.String() != "{\"a\":  1}\nb: 2\n" {
		t.Errorf("got %q %v", out.String(), err)
	}
}
