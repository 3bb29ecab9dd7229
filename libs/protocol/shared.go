package protocol

import "slices"

// Choice is what approvers said of one obstacle, for the grant of its plan. It counts for exactly one finding.
type Choice struct {
	Object  string   `json:"object"`  // as Chosen names it
	Choice  string   `json:"choice"`  // events.ChoiceKeep, ChoiceTake, ChoiceOverride or ChoiceAllow
	Finding string   `json:"finding"` // digest
	By      []string `json:"by"`      // opaque ids
}

// ChoiceName is how choices name an object: a namespaced one is in the plan's namespace.
func (r ObjectRef) ChoiceName() string { return r.Kind + "/" + r.Name }

// Chosen is what was said of an object with this finding, nil where nothing was.
func (g Grant) Chosen(object, finding string) *Choice {
	i := slices.IndexFunc(g.Choices, func(c Choice) bool { return c.Object == object && c.Finding == finding })
	if i < 0 || finding == "" {
		return nil
	}
	return &g.Choices[i]
}

// Allowance is what one bundle of a plan needs an administrator's word for, and may not have without.
type Allowance struct {
	CSV     string   `json:"csv"`
	Content string   `json:"content"` // digest of the bundle
	Needed  []string `json:"needed"`  // sentences
	// Finding is the digest that a choice names; By are the actors who allowed it, none while nobody did.
	Finding string   `json:"finding"`
	By      []string `json:"by,omitempty"`
}

// Object is how choices name it.
func (a Allowance) Object() string { return "ClusterServiceVersion/" + a.CSV }

// SharedObject is one object of a plan that other operators brought, too, in another form than the plan's.
type SharedObject struct {
	ObjectRef
	Operator string   `json:"operator"` // of the plan, as namespace/csv
	Holder   string   `json:"holder"`   // whose form the cluster has, as namespace/csv
	Owners   []string `json:"owners"`   // all that are installed and have it, as namespace/csv
	// Differences are from what the cluster has to what the plan brings; of what may be confidential only the path.
	Differences []FieldDrift `json:"differences"`
	// Refused is why the plan's form cannot take the place of the other one, as the API server says; "" where it can.
	Refused string `json:"refused,omitempty"`
	// Finding is the digest that a choice names; Choice is what was chosen, "" while nobody did, and By who did.
	Finding string   `json:"finding"`
	Choice  string   `json:"choice,omitempty"`
	By      []string `json:"by,omitempty"`
}
