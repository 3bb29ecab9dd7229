package uninstall

import (
	"errors"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
)

// checkGrant asks before a removal begins whether the hub wants it, here and now (DESIGN D6).
func (w worker) checkGrant(r protocol.Removal) *failure.Failure {
	d, err := r.Digest()
	switch err = errors.Join(err, r.Grant.Verify(w.Logs.GrantKey)); {
	case err != nil:
		return &failure.Failure{Class: failure.Conflict, Reason: failure.ReasonGrant, Quick: true, Message: err.Error()}
	case r.Grant.Plan != r.ID || r.Grant.Digest != string(d) || r.Grant.Cluster != w.Logs.ClusterID ||
		r.Grant.Namespace != w.Namespace:
		return &failure.Failure{
			Class: failure.Conflict, Reason: failure.ReasonGrant, Quick: true,
			Message: "the grant is for another removal, cluster or namespace",
		}
	case r.Grant.Expired(w.Env.Now()):
		return failure.GrantExpired(r.Grant)
	}
	return nil
}
