package protocol

import (
	"encoding/json"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
)

// GrantedOperator is one operator that a plan installs, as the hub signed it. By it, the state that Chandler stored of
// an operator in the cluster is distinguished from what others wrote there.
type GrantedOperator struct {
	CSV      string `json:"csv"`
	Package  string `json:"package"`
	Content  string `json:"content"` // digest of the canonical bundle
	Replaces string `json:"replaces,omitempty"`
	Reason   string `json:"reason,omitempty"` // as in events.PlannedBundle
	// Config is the digest of its subscription's configuration as it is sealed (ConfigDigest): of a value that can be
	// guessed, a digest would tell.
	Config string `json:"config,omitempty"`
	// Rendering names the rules by which its objects are rendered as long as it is installed (package render).
	Rendering string `json:"rendering,omitempty"`
}

// Granted are the operators of a plan, for its grant. configs are the configurations by ClusterServiceVersion.
func Granted(bundles []events.PlannedBundle, configs map[string]json.RawMessage, rendering string) (
	[]GrantedOperator, error,
) {
	out := make([]GrantedOperator, 0, len(bundles))
	for _, b := range bundles {
		config, err := ConfigDigest(configs[b.CSV])
		if err != nil {
			return nil, err
		}
		out = append(out, GrantedOperator{
			CSV: b.CSV, Package: b.Package, Content: b.Content, Replaces: b.Replaces,
			Reason: b.Reason, Config: config, Rendering: rendering,
		})
	}
	return out, nil
}

// configType is the type prefix of the digest of a configuration.
const configType = "chandler.granted-config.v1"

// ConfigDigest is the digest of a configuration; "" where there is none.
func ConfigDigest(config json.RawMessage) (string, error) {
	if len(config) == 0 || string(config) == "null" {
		return "", nil
	}
	d, err := digest.JSON(configType, config)
	return string(d), err
}
