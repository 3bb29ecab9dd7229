package model

// Named is the one thing that a name means.
type Named struct {
	Kind    string `json:"kind" enum:"subscription,operator"`
	Name    string `json:"name" doc:"Of the subscription, or of the operator's CSV"`
	Package string `json:"package"`
}
