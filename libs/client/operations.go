package client

import (
	"context"
	"time"
)

// States of an operation in which it goes on by itself no more; OperationWaiting goes on when people have decided.
const (
	OperationWaiting   = "WaitingForApproval"
	OperationSucceeded = "Succeeded"
)

// operationPause is between two requests: a gateway at which too many wait answers at once.
const operationPause = time.Second

// WaitOperation returns what became of a write, whose position is the id, when it is over or waits for approval: each
// request waits for some seconds at the gateway. ctx bounds the time.
func (c *Client) WaitOperation(ctx context.Context, id string) (*Operation, error) {
	for {
		op, err := c.GetOperation(ctx, id, Header("Prefer", "wait=20"))
		if err != nil || op.Over || op.State == OperationWaiting {
			return op, err
		}
		if !pause(ctx, operationPause) {
			return op, ctx.Err()
		}
	}
}
