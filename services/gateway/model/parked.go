package model

import "time"

// ParkedEvent is an event that a consumer of the log could not take, or one that waits behind such an event.
type ParkedEvent struct {
	Consumer  string    `json:"consumer" doc:"Who could not take it, such as a read model"`
	Stream    string    `json:"stream" doc:"Stream of the event; its later events wait behind it, other streams go on"`
	Version   int64     `json:"version" doc:"Place of the event in its stream"`
	Position  string    `json:"position" doc:"Place of the event in the log"`
	Type      string    `json:"type"`
	Reason    string    `json:"reason" doc:"Why it could not be taken"`
	Attempts  int       `json:"attempts" doc:"0 for an event that waits behind another one"`
	Since     time.Time `json:"since"`
	NextRetry time.Time `json:"nextRetry"`
	Body      []byte    `json:"body,omitempty" doc:"Bytes of the event as the record held them, in base64; only where one event is asked for, and only if it was tried"`
}

// SkippedEvent is an event that a person has had a consumer go on without.
type SkippedEvent struct {
	ParkedEvent
	SkippedAt time.Time `json:"skippedAt"`
	SkippedBy string    `json:"skippedBy" doc:"Actor of the person"`
	Why       string    `json:"why" doc:"What the person gave as the reason"`
}

// ParkedRef names a parked event.
type ParkedRef struct {
	Consumer string `json:"consumer" minLength:"1" maxLength:"200" doc:"As the list of parked events names it"`
	Stream   string `json:"stream" minLength:"1" maxLength:"200" doc:"As the list of parked events names it"`
	Version  int64  `json:"version" minimum:"1"`
}

// RetryParked has parked events tried again at once.
type RetryParked struct {
	Consumer string `json:"consumer" minLength:"1" maxLength:"200" doc:"As the list of parked events names it"`
	Stream   string `json:"stream,omitempty" maxLength:"200" doc:"Of this stream only; of all without it"`
}

// SkipParked has a consumer go on without an event.
type SkipParked struct {
	ParkedRef
	Reason string `json:"reason" minLength:"1" maxLength:"500" pattern:"^[^\\x00-\\x1f\\x7f]+$" patternDescription:"without control characters" doc:"Kept beside the skipped event, with who gave it"`
}
