package model

import (
	"encoding/json"
	"time"
)

// Event is one entry of the log, as CloudEvents 1.0.
type Event struct {
	SpecVersion   string          `json:"specversion"`
	ID            string          `json:"id"`
	Source        string          `json:"source"`
	Type          string          `json:"type"`
	Subject       string          `json:"subject"`
	Time          time.Time       `json:"time"`
	Recorded      time.Time       `json:"recordedtime" doc:"When the record took it in"`
	Sequence      string          `json:"sequence" doc:"Position in the log"`
	Stream        string          `json:"stream"`
	StreamVersion int64           `json:"streamversion"`
	Correlation   string          `json:"correlationid,omitempty"`
	Causation     string          `json:"causationid,omitempty"`
	TraceParent   string          `json:"traceparent,omitempty"`
	Actor         string          `json:"authid,omitempty" doc:"Opaque id of who asked"`
	Hash          string          `json:"hash,omitempty" doc:"Of the stored bytes"`
	Data          json.RawMessage `json:"data"`
}

// EventFilter chooses events; empty fields choose all.
type EventFilter struct {
	Types   []string
	Subject string
	Stream  string
	Cluster string
	After   string // position
	Limit   int
}

// ErasedBody is what is left of a part of an intent that stood outside the log and was erased.
type ErasedBody struct {
	ID       string    `json:"id" doc:"The commitment by which events name it"`
	Kind     string    `json:"kind" doc:"subscription-config, catalog-source, annotations or plan-reason"`
	ErasedAt time.Time `json:"erasedAt"`
	ErasedBy string    `json:"erasedBy" doc:"Opaque id of who erased it"`
}
