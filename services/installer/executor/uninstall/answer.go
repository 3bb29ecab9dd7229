package uninstall

import (
	"context"
	"encoding/json"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// Answer says what a removal would do now.
func (s *Stage) Answer(ctx context.Context, raw json.RawMessage) (any, error) {
	var q protocol.RemovalQuestion
	if err := json.Unmarshal(raw, &q); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "read the question")
	}
	f, err := Find(ctx, s.Client, Question{
		Kinds: removableKinds(), Namespace: q.Namespace, CSV: q.CSV, CRDs: q.CRDs,
		Dependants: q.Dependants, Count: true, Operators: s.Known,
	})
	if err == nil && !f.Installed {
		err = errs.New(errs.NotFound, "operator %s is not installed in namespace %s of cluster %s any more", q.CSV,
			q.Namespace, s.Cluster)
	}
	return f.Plan, err
}
