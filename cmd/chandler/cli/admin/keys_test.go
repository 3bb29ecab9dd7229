package admin

import (
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/cmd/chandler/keys"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestRetireRefusesWhatIsUsed: a key that the installation uses, or of which nobody can say that it is not used, is not
// taken out; the refusal says how often and what ends the use.
func TestRetireRefusesWhatIsUsed(t *testing.T) {
	t.Parallel()
	const old, other = "0123456789abcdef", "fedcba9876543210"
	for _, p := range keys.Purposes() {
		for name, c := range map[string]struct {
			use  model.KeyUse
			says string // "" for a key that may go
		}{
			"in use": {
				model.KeyUse{Purpose: string(p), Key: old, Uses: 3}, "in use, 3 times: " + needs[p],
			},
			"by a key without id":  {model.KeyUse{Purpose: string(p), Key: "", Uses: 2}, "2 uses of " + string(p)},
			"by another key":       {model.KeyUse{Purpose: string(p), Key: other, Uses: 3}, ""},
			"not any more":         {model.KeyUse{Purpose: string(p), Key: old}, ""},
			"for another purpose":  {model.KeyUse{Purpose: "another", Key: old, Uses: 3}, ""},
			"nothing is ever used": {},
		} {
			err := unused(p, old, []model.KeyUse{c.use})
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, %s: %v, want %q", p, name, err, c.says)
			}
		}
		if needs[p] == "" {
			t.Errorf("nobody says how uses of %s end", p)
		}
	}
}
