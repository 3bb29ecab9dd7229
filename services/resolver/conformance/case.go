package conformance

import (
	"encoding/json"

	"github.com/chandler-fleet/chandler/libs/catalog"
)

// Case is one namespace to be resolved, and what OLM did with it.
type Case struct {
	Name        string          `json:"name"`
	Topic       string          `json:"topic"`
	Description string          `json:"description"`
	Notes       json.RawMessage `json:"notes"`  // for readers
	Source      string          `json:"source"` // the test of OLM for the same behaviour, for readers

	Namespace       string          `json:"namespace"`
	GlobalNamespace string          `json:"globalNamespace"` // its catalogs are visible everywhere
	OperatorGroups  []OperatorGroup `json:"operatorGroups"`
	Catalogs        []Catalog       `json:"catalogs"`
	Subscriptions   []Subscription  `json:"subscriptions"`
	Installed       []CSV           `json:"installed"`
	Expect          *Expectation    `json:"expect"` // nil in a case that is only to be resolved
}

// OperatorGroup is one of the namespace; more or fewer than one is an error of the resolution.
type OperatorGroup struct {
	Name                  string   `json:"name"`
	TargetNamespaces      []string `json:"targetNamespaces"`
	UpgradeStrategy       string   `json:"upgradeStrategy"`
	ExcludeGlobalCatalogs bool     `json:"excludeGlobalCatalogs"`
}

// Catalog is a catalog source. Its content is inline, in a file, or not to be had.
type Catalog struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Priority    int32             `json:"priority"`
	Inline      []json.RawMessage `json:"inline"`      // documents of a file-based catalog
	File        string            `json:"file"`        // the same as JSON lines, relative to the folder of a set
	Unavailable bool              `json:"unavailable"` // it does not answer
	InvalidFBC  string            `json:"invalidFBC"`  // why opm refuses the content, for readers
}

// Subscription is one of the namespace, spec and status.
type Subscription struct {
	Name             string `json:"name"`
	Package          string `json:"package"`
	Channel          string `json:"channel"`
	Catalog          string `json:"catalog"`
	CatalogNamespace string `json:"catalogNamespace"`
	StartingCSV      string `json:"startingCSV"`
	CurrentCSV       string `json:"currentCSV"`
	InstalledCSV     string `json:"installedCSV"`
}

// CSV is an installed ClusterServiceVersion.
type CSV struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"` // "" is that of the case
	Package   string `json:"package"`   // for readers: the annotation has it, or the subscriptions do
	Version   string `json:"version"`
	Replaces  string `json:"replaces"`
	Phase     string `json:"phase"` // "" is Succeeded
	Copied    bool   `json:"copied"`
	Provides  []API  `json:"provides"` // owned by its spec
	Requires  []API  `json:"requires"` // required by its spec
	// Properties are the annotation operatorframework.io/properties; NoProperties says that there is none.
	Properties   []catalog.Property `json:"properties"`
	NoProperties bool               `json:"noProperties"`
	// Subscription is the one that OLM takes it to belong to, where several record it.
	Subscription string `json:"subscription"`
}

// API is a custom resource or an aggregated API of a CSV's spec.
type API struct {
	catalog.GVK

	APIService bool `json:"apiService"`
}

// The results of a resolution.
const (
	ResultResolved = "resolved"
	ResultError    = "error"
)

// Expectation is what OLM did.
type Expectation struct {
	Result               string         `json:"result"`
	Runs                 int            `json:"runs"`
	Deterministic        bool           `json:"deterministic"`
	Install              []Install      `json:"install"`
	UpdatedSubscriptions []Updated      `json:"updatedSubscriptions"`
	Alternatives         []Alternative  `json:"alternatives"`
	Error                *ExpectedError `json:"error"`
}

// Install is a bundle of a plan.
type Install struct {
	Name             string   `json:"name"`
	Package          string   `json:"package"`
	Version          string   `json:"version"`
	Channel          string   `json:"channel"`
	Catalog          string   `json:"catalog"`
	CatalogNamespace string   `json:"catalogNamespace"`
	Replaces         string   `json:"replaces,omitempty"` // as OLM writes it into the plan
	Upgrades         string   `json:"upgrades,omitempty"` // the CSV that is there and goes
	Subscriptions    []string `json:"subscriptions,omitempty"`
	NewSubscription  string   `json:"newSubscription,omitempty"`
	AlreadyCurrent   bool     `json:"alreadyCurrent,omitempty"` // chosen, but not in the plan
}

// Updated is a subscription that moves to another CSV.
type Updated struct {
	Name       string `json:"name"`
	CurrentCSV string `json:"currentCSV"`
}

// Alternative is one of several plans that OLM made of the same case.
type Alternative struct {
	Count                int       `json:"count"`
	Install              []Install `json:"install"`
	UpdatedSubscriptions []Updated `json:"updatedSubscriptions"`
}

// ExpectedError is why OLM planned nothing.
type ExpectedError struct {
	Class             string     `json:"class"`
	Message           string     `json:"message"`
	Facts             []Fact     `json:"facts"` // in every explanation seen
	SometimesFacts    []Fact     `json:"sometimesFacts"`
	DistinctCores     int        `json:"distinctCores"`
	CoreSubscriptions [][]string `json:"coreSubscriptions"` // of each distinct explanation
	Subscriptions     []string   `json:"subscriptions"`
	Packages          []string   `json:"packages"`
}

// Fact is one statement of an explanation.
type Fact struct {
	Kind         string   `json:"kind"`
	Bundle       string   `json:"bundle"`
	Bundles      []string `json:"bundles"`
	Catalog      string   `json:"catalog"`
	Channel      string   `json:"channel"`
	CSV          string   `json:"csv"`
	GVK          string   `json:"gvk"`
	Package      string   `json:"package"`
	Requirement  string   `json:"requirement"`
	Subscription string   `json:"subscription"`
	Text         string   `json:"text"`
}

// failForward is the only upgrade strategy beside the default one.
const failForward = "TechPreviewUnsafeFailForward"
