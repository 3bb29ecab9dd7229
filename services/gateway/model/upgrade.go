package model

import "github.com/chandler-fleet/chandler/libs/catalog/compare"

// States of what is known of an upgrade.
const (
	UpgradeCompared = "Compared"
	UpgradePending  = "Pending" // the indexer has not compared the two yet
	UpgradeUnknown  = "Unknown" // the manifests of one of them are not at hand
)

// Upgrade is what a step from one version to another changes: for custom resources that exist, and in
// what the operator may do.
type Upgrade struct {
	From        string `json:"from" doc:"CSV that is replaced"`
	To          string `json:"to" doc:"CSV that takes its place"`
	FromContent string `json:"fromContent,omitempty" doc:"Digest of the canonical bundle"`
	ToContent   string `json:"toContent,omitempty" doc:"Digest of the canonical bundle"`
	State       string `json:"state" enum:"Compared,Pending,Unknown"`
	// Semantics are the rules by which they were compared: older ones counted less.
	Semantics string `json:"semantics,omitempty" example:"chandler.compare.v2" doc:"Rules by which the two were compared; older ones than those of today counted less"`
	Breaking  bool   `json:"breaking" doc:"Existing custom resources can become invalid or unreachable"`
	compare.Difference
}

// UpgradeFilter chooses upgrades of a package.
type UpgradeFilter struct {
	From, To string
	View     CatalogView
	Page
}
