package view

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	libcatalog "github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// defaultIcon is shown for packages that have none: a box.
const defaultIcon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><path fill="#6a6e73" d="M32 4 6 18v28l26 14 26-14V18zm0 6.8L49.6 20 32 29.4 14.4 20zM11 24.6l18.5 10v18L11 42.700zm24.500 28v-18L53 24.600v18.100z"/></svg>`

// iconTypes are the forms that pictures may have. Whatever else an author writes is given out as bytes that
// no browser shows.
var iconTypes = []string{"image/svg+xml", "image/png", "image/jpeg", "image/gif", "image/webp"}

func iconOf(p *libcatalog.Package) model.PackageIcon {
	icon := model.PackageIcon{Data: []byte(defaultIcon), MediaType: "image/svg+xml"}
	if p.Icon != nil && len(p.Icon.Data) > 0 {
		icon.Data, icon.MediaType = p.Icon.Data, p.Icon.MediaType
		if !slices.Contains(iconTypes, icon.MediaType) {
			icon.MediaType = "application/octet-stream"
		}
	}
	sum := sha256.Sum256(append([]byte(icon.MediaType+"\x00"), icon.Data...))
	icon.ETag = `"` + hex.EncodeToString(sum[:16]) + `"`
	return icon
}
