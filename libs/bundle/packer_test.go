package bundle_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/chandler-fleet/chandler/libs/bundle"
)

// TestPacker proves that a packer that is shared gives what single calls give.
func TestPacker(t *testing.T) {
	t.Parallel()
	p := bundle.NewPacker(2)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			raw := bytes.Repeat(fmt.Appendf(nil, `{"manifests":[%d]}`, i), 1000*i)
			if !bytes.Equal(p.Pack(raw), bundle.Pack(raw)) {
				t.Errorf("pack %d differs", i)
			}
		})
	}
	wg.Wait()
}
