package model

import "time"

// States of an operation. Waiting is for people; what is Succeeded, Failed or Superseded is over.
const (
	OperationRunning    = "Running"
	OperationWaiting    = "WaitingForApproval"
	OperationSucceeded  = "Succeeded"
	OperationFailed     = "Failed"
	OperationSuperseded = "Superseded"
)

// Operation is what becomes of an intent that takes long. It is derived of the event log and of the object, and stored
// nowhere.
type Operation struct {
	ID          string    `json:"id" doc:"Position of the intent, as the answer to the write has it"`
	Type        string    `json:"type" doc:"Of the event of the intent" example:"subscription.created.v1"`
	Object      string    `json:"object" doc:"Path of what it is about"`
	State       string    `json:"state" enum:"Running,WaitingForApproval,Succeeded,Failed,Superseded" doc:"WaitingForApproval: a plan waits for people; Superseded: another intent has taken its place"`
	Over        bool      `json:"over" doc:"Nothing more comes of it by itself. What Failed may go on when what it failed for changes"`
	Reason      string    `json:"reason,omitempty" doc:"Code for programs"`
	Since       time.Time `json:"since" doc:"When it came to be so, as far as it is known"`
	Result      string    `json:"result,omitempty" doc:"Path of what came of it: the install plan"`
	Actor       string    `json:"actor,omitempty" doc:"Who asked"`
	RequestedAt time.Time `json:"requestedAt"`
}

// IsOver says whether a state is the end.
func IsOver(state string) bool {
	return state == OperationSucceeded || state == OperationFailed || state == OperationSuperseded
}
