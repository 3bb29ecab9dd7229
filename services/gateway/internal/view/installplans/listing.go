package installplans

import (
	"strconv"

	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
)

// listing is how install plans are listed. A plan is where it was proposed in the log for good, so that this sorts by
// creation, too.
var listing = readmodel.Listing[row]{
	Key: []readmodel.Column{{SQL: "p.epoch", Type: readmodel.Number}, {SQL: "p.position", Type: readmodel.Number}},
	KeyOf: func(r row) []string {
		return []string{strconv.FormatInt(r.Epoch, 10), strconv.FormatInt(r.Position, 10)}
	},
	Newest:  true,
	Cluster: "p.cluster",
	Sorts: map[string]readmodel.Sort[row]{
		"name":    {Column: readmodel.Column{SQL: "p.name"}, Of: func(r row) string { return r.Name }},
		"cluster": {Column: readmodel.Column{SQL: "p.cluster"}, Of: func(r row) string { return r.Cluster }},
		"phase":   {Column: readmodel.Column{SQL: "(" + shownPhase + ")"}, Of: func(r row) string { return r.Phase }},
		"created": {
			Column: readmodel.Column{SQL: "p.epoch", Type: readmodel.Number},
			Of:     func(r row) string { return strconv.FormatInt(r.Epoch, 10) },
		},
		"changed": {
			Column: readmodel.Column{SQL: "p.updated", Type: readmodel.Time},
			Of:     func(r row) string { return readmodel.At(r.Updated) },
		},
	},
	Fields: map[string]readmodel.Column{
		"metadata.name": {SQL: "p.name"}, "metadata.namespace": {SQL: "p.namespace"}, "cluster": {SQL: "p.cluster"},
		"id": {SQL: "p.id"}, "approval": {SQL: "p.approval"}, "status.phase": {SQL: "(" + shownPhase + ")"},
		"begun":          {SQL: "p.begun", Type: readmodel.Bool},
		"blocked.reason": {SQL: "case when p.ended is null then p.blocked_reason else '' end"},
	},
}
