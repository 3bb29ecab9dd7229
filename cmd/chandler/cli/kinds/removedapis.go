package kinds

import (
	"strings"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// RemovedHeading stands above APIs that the next version drops.
const RemovedHeading = "APIs that the next version of Kubernetes no longer serves:"

// RemovedKind is a kind as kubectl explain's --api-version has it.
func RemovedKind(r model.RemovedAPI) string {
	return strings.TrimPrefix(r.Group+"/"+r.Version, "/") + " " + r.Kind
}

// describeRemovedAPIs warns of APIs that the next version drops (R-CSV-61).
func describeRemovedAPIs(p *printer.Page, list []model.RemovedAPI) {
	if len(list) == 0 {
		return
	}
	p.Section(strings.TrimSuffix(RemovedHeading, ":"))
	for _, r := range list {
		p.Row(RemovedKind(r), "removed in "+r.Removed, r.For)
	}
}
