package hubclient

import (
	"sync"

	"github.com/chandler-fleet/chandler/libs/digest"
)

// packs are bundles as they were published, the last ones that fit. They are some hundredths of what bundles are in
// memory.
type packs struct {
	most int // bytes; 0 remembers none

	mu    sync.Mutex
	size  int
	order []digest.Digest
	have  map[digest.Digest][]byte
}

func newPacks(most int) *packs { return &packs{most: most, have: map[digest.Digest][]byte{}} }

func (p *packs) get(d digest.Digest) ([]byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pack, ok := p.have[d]
	return pack, ok
}

func (p *packs) put(d digest.Digest, pack []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.have[d]; ok || len(pack) > p.most {
		return
	}
	p.have[d] = pack
	p.order = append(p.order, d)
	for p.size += len(pack); p.size > p.most; p.order = p.order[1:] {
		p.size -= len(p.have[p.order[0]])
		delete(p.have, p.order[0])
	}
}
