package unit

import (
	"crypto/rand"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// opaqueChars of base32 are 60 bits: ids that nobody guesses to be those of a person, short enough to type.
const opaqueChars = 12

// Opaque is a new id that says nothing of what it stands for but its kind.
func Opaque(kind string) string { return kind + "-" + strings.ToLower(rand.Text()[:opaqueChars]) }

// marks begin the actors that are made, by kind.
var marks = map[string]string{access.KindUser: "person", access.KindServiceAccount: "service"}

// NewActor is the opaque id of somebody new, a person or a program.
func NewActor(kind string) string { return Opaque(marks[kind]) }

// NameAndID is where a page of a list by name begins: behind that name and id, or at the start with neither.
func NameAndID(page model.Page) (name, id string, err error) {
	switch len(page.After) {
	case 0:
		return "", "", nil
	case 2: //nolint:mnd // name and id
		return page.After[0], page.After[1], nil
	default:
		return "", "", errs.New(errs.Invalid, "the cursor does not belong to this list").At("query.cursor", "cursor")
	}
}
