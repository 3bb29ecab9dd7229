package model

import "time"

// Operator is an installed operator: one ClusterServiceVersion in one namespace of one cluster.
type Operator struct {
	Cluster       string    `json:"cluster"`
	Namespace     string    `json:"namespace"`
	Name          string    `json:"name" doc:"Of the CSV" example:"tidegauge.v2.1.0"`
	Package       string    `json:"package"`
	Version       string    `json:"version"`
	Phase         string    `json:"phase" doc:"Pending, InstallReady, Installing, Succeeded, Failed, Replacing, Deleting or Unknown"`
	Reason        string    `json:"reason"`
	Message       string    `json:"message,omitempty"`
	Content       string    `json:"content,omitempty" doc:"Digest of the canonical bundle"`
	Plan          string    `json:"plan,omitempty" doc:"Id of the install plan that brought it"`
	Flapping      bool      `json:"flapping,omitempty" doc:"The phase changes too often to record each change"`
	History       []Phase   `json:"history" nullable:"false" doc:"Newest 20 transitions, oldest first"`
	InstalledAt   time.Time `json:"installedAt"`
	UpdatedAt     time.Time `json:"updatedAt"`
	Stream        string    `json:"stream,omitempty" doc:"Id of its stream of events"`
	StreamVersion int64     `json:"streamVersion,omitempty" doc:"Of its stream"`
}

// Phase is one transition of a CSV (R-CSV-5).
type Phase struct {
	Phase  string    `json:"phase"`
	Reason string    `json:"reason"`
	Time   time.Time `json:"time"`
	Event  string    `json:"event" doc:"Id of the event"`
}

// OperatorFilter chooses installed operators; empty fields choose all.
type OperatorFilter struct {
	Cluster   string
	Namespace string
	Package   string
	Phase     string
	Page
}
