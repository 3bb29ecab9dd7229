package previewapi

// RemovalSubject is where the resolver says who depends on an installed operator, and what it would decide once that is
// gone: RemovalQuestion → RemovalPreview. Nothing is kept of the answer.
const RemovalSubject = "chandler.rpc.resolver.removal"

// RemovalQuestion names an installed operator, and the subscriptions that would end with it.
type RemovalQuestion struct {
	Tenant        string   `json:"tenant"`
	Cluster       string   `json:"cluster"`
	Namespace     string   `json:"namespace"`
	CSV           string   `json:"csv"`
	Subscriptions []string `json:"subscriptions,omitempty"`
}

// RemovalPreview is what the removal of an operator would leave to the resolver.
type RemovalPreview struct {
	Dependants []Dependant  `json:"dependants"` // by namespace and name
	After      ScopePreview `json:"outlook"`
}

// Dependant is an installed operator of which a requirement is met by another one alone.
type Dependant struct {
	Namespace string `json:"namespace"`
	CSV       string `json:"csv"`
	// Requires are its requirements of this kind, such as "of package gauge in range >=1.0.0".
	Requires []string `json:"requires"`
}

// String is namespace/csv.
func (d Dependant) String() string { return d.Namespace + "/" + d.CSV }
