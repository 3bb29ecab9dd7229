package mirror

import (
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/protocol"
)

// deprecationConditions are one for each deprecated element that the subscription uses, and their roll-up (R-SUB-41).
// have is what is installed.
func deprecationConditions(s protocol.Subscription, have string, now time.Time) []any {
	var out []any
	var all []string
	for _, d := range s.Deprecations {
		var typ string
		switch {
		case d.Schema == "olm.package":
			typ = "PackageDeprecated"
		case d.Schema == "olm.channel" && d.Name == s.Spec.Channel && d.Name != "":
			typ = "ChannelDeprecated"
		case d.Schema == "olm.bundle" && d.Name == have && have != "":
			typ = "BundleDeprecated"
		default:
			continue
		}
		text := d.Schema + "/" + d.Name + ": " + d.Message
		all = append(all, text)
		out = append(out, conditionOf(typ, "True", reasonDeprecated, text, now))
	}
	if len(all) > 0 {
		out = append(out, conditionOf(reasonDeprecated, "True", reasonDeprecated, strings.Join(all, "; "), now))
	}
	return out
}

// reasonDeprecated is the reason of what a catalog deprecates, and the type of the roll-up.
const reasonDeprecated = "Deprecated"
