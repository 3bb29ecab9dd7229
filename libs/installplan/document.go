package installplan

import (
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
)

// Document is the content of an install plan: what will be done and why. Its digest is the plan's
// digest, so it holds no id, time or generation (DESIGN, settled details: Plan identity).
type Document struct {
	Namespace string        `json:"namespace"`
	Component string        `json:"component"`
	Input     digest.Digest `json:"input"`
	// Rendering names the rules by which the bundles were rendered to the steps (package render).
	Rendering string                 `json:"rendering"`
	Bundles   []events.PlannedBundle `json:"bundles"`
	Steps     []Step                 `json:"steps"`
	Base      events.PlanBase        `json:"base"`
}

// Step is one object to apply, in order.
type Step struct {
	// Resolving is the CSV that the step belongs to (R-IP §5.1).
	Resolving string        `json:"resolving"`
	Group     string        `json:"group"`
	Version   string        `json:"version"`
	Kind      string        `json:"kind"`
	Namespace string        `json:"namespace,omitempty"`
	Name      string        `json:"name"`
	Digest    digest.Digest `json:"digest"` // of the rendered object, "chandler.object.v1"
}

// DocumentType is the type prefix of a plan's digest.
const DocumentType = "chandler.plan.v1"

// Digest returns the plan's digest.
func (d Document) Digest() (digest.Digest, error) { return digest.JSON(DocumentType, d) }
