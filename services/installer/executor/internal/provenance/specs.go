package provenance

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// Specs remembers how the specs of InstalledOperators compare with the bundles that they come from, so that a bundle is
// fetched once for each change of an object. Its methods may be called side by side.
type Specs struct {
	mu    sync.Mutex
	known map[string]verdict // by namespace/name
}

type verdict struct {
	of  string      // what was compared
	csv *bundle.CSV // what counts instead; nil where the object says the same
}

// NewSpecs returns what a new session knows: nothing.
func NewSpecs() *Specs { return &Specs{known: map[string]verdict{}} }

// Contents fetches a bundle by its digest.
type Contents interface {
	Get(ctx context.Context, d digest.Digest) (bundle.Content, error)
}

// Compare compares the spec of an InstalledOperator with its bundle. It returns the ClusterServiceVersion that counts
// where the object says otherwise, else nil; first is set when that was found out by this call.
func (s *Specs) Compare(ctx context.Context, o *unstructured.Unstructured, granted protocol.GrantedOperator,
	from Contents,
) (csv *bundle.CSV, first bool, err error) {
	key, of := o.GetNamespace()+"/"+o.GetName(), fmt.Sprint(o.GetUID(), " ", o.GetGeneration(), " ", granted.Content,
		" ", granted.Replaces)
	s.mu.Lock()
	have, ok := s.known[key]
	s.mu.Unlock()
	if ok && have.of == of {
		return have.csv, false, nil
	}
	content, err := from.Get(ctx, digest.Digest(granted.Content))
	if err != nil {
		return nil, false, errs.Wrap(errs.KindOf(err), err, "what was granted of %s", granted.CSV)
	}
	want, err := Expected(content, granted)
	if err != nil {
		return nil, false, err
	}
	if !EqualSpecs(want.Object["spec"], o.Object["spec"]) {
		raw, err := want.MarshalJSON()
		if err != nil {
			return nil, false, errs.Wrap(errs.Internal, err, "encode %s", granted.CSV)
		}
		found, err := bundle.ParseCSV(raw)
		if err != nil {
			return nil, false, err
		}
		csv = &found
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[key] = verdict{of, csv}
	return csv, csv != nil, nil
}
