package agentconfig

import (
	"encoding/json"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys"
)

// JoinVersion is that of Join.
const JoinVersion = "chandler.join.v1"

// Join is what a program knows that wants to become the agent of a cluster. It holds a secret, which is of no use once
// somebody has used it.
type Join struct {
	Version   string `json:"version"` // JoinVersion
	Tenant    string `json:"tenant"`
	Cluster   string `json:"cluster"`   // name, for people
	ClusterID string `json:"clusterId"` // UUID
	NATSURL   string `json:"natsURL"`
	NATSCA    string `json:"natsCA,omitempty"` // authorities in PEM; "": those of the system
	// HubKeys are the public keys by which the hub is believed, as in Config.
	HubKeys []string `json:"hubKeys"`
	// Seed and JWT are the join token: the seed of a user of NATS, and what lets it in.
	Seed string `json:"seed"`
	JWT  string `json:"jwt"`
}

// ParseJoin reads the document. Errors are of kind errs.Invalid, name the field, and never quote the secret.
func ParseJoin(raw []byte) (j Join, err error) {
	if len(raw) > MaxBytes {
		return j, errs.New(errs.Invalid, "join configuration: %d bytes, %d are allowed", len(raw), MaxBytes)
	}
	if err := json.Unmarshal(raw, &j); err != nil {
		return Join{}, errs.New(errs.Invalid, "join configuration: it is not the JSON that chandler cluster join-token "+
			"writes")
	}
	_, badCluster := uuid.Parse(j.ClusterID)
	switch {
	case j.Version != JoinVersion:
		return j, errs.New(errs.Invalid, "join configuration: version is %.40q, this program reads %q", j.Version,
			JoinVersion)
	case badCluster != nil:
		return j, errs.New(errs.Invalid, "join configuration: clusterId %.60q is not a UUID", j.ClusterID)
	}
	for name, value := range map[string]string{"tenant": j.Tenant, "natsURL": j.NATSURL, "seed": j.Seed, "jwt": j.JWT} {
		if value == "" {
			return j, errs.New(errs.Invalid, "join configuration: %s is missing", name)
		}
	}
	_, err = j.Hub()
	return j, err
}

// Hub are the keys by which the hub is believed.
func (j Join) Hub() (keys.Accepted, error) {
	a, err := keys.ParseAccepted(j.HubKeys)
	return a, errs.Wrap(errs.Invalid, err, "join configuration: hubKeys")
}
