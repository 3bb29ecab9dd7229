package pg

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// The SQLSTATE codes that Chandler's own functions raise (migrations/README.md).
const (
	// CodeConflict: the stream's head is not at the expected version.
	CodeConflict = "CH001"
	// CodeExists: a stream that was expected not to exist does.
	CodeExists = "CH002"
	// CodeForbidden: the role or the tenant of the session does not allow this.
	CodeForbidden = "CH003"
	// CodeClosed: the stream has ended, or the life of its name before has not.
	CodeClosed = "CH004"
	// CodeDeposed: the session acts under a term that has passed to somebody else.
	CodeDeposed = "CH005"
	// CodeUnknownType: an event type that is not in the registry.
	CodeUnknownType = "CH006"
	// CodeComingType: an event type that a live reader does not know yet; the same append succeeds later.
	CodeComingType = "CH007"
)

// codeCancelled is query_canceled: by statement_timeout, or by a person.
const codeCancelled = "57014"

// Cancelled reports whether the server ended a statement of its own accord, as by statement_timeout. That is no outage:
// the same statement will take as long again.
func Cancelled(err error) bool {
	p, ok := errors.AsType[*pgconn.PgError](err)
	return ok && p.Code == codeCancelled
}

// codeUndefined is undefined_table.
const codeUndefined = "42P01"

// Undefined reports whether a statement named a table that is not there. That is a fault of the program, which no
// repetition cures, but for the tables of a version of a read model: who keeps it makes them anew.
func Undefined(err error) bool {
	p, ok := errors.AsType[*pgconn.PgError](err)
	return ok && p.Code == codeUndefined
}

// codeDeadlock is deadlock_detected, codeSerialization serialization_failure.
const (
	codeDeadlock      = "40P01"
	codeSerialization = "40001"
)

// Deadlocked reports whether the server ended a statement because of what another did in the same moment: the same
// succeeds once that is over, however often it meets others until then.
func Deadlocked(err error) bool {
	p, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (p.Code == codeDeadlock || p.Code == codeSerialization)
}

// Err gives an error of the driver its kind. Errors that have a kind already, that come from ctx before
// the driver asked, or that are not the driver's stay as they are. nil stays nil.
func Err(err error) error {
	var kinded *errs.Error
	switch {
	case err == nil, errors.As(err, &kinded):
		return err
	case errors.Is(err, context.DeadlineExceeded) && pgconn.Timeout(err):
		return errs.Wrap(errs.Unavailable, err, "database: no answer in time")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, pgx.ErrNoRows):
		return errs.Wrap(errs.NotFound, err, "database")
	}
	if k := kindOf(err); k != "" {
		return errs.Wrap(k, err, "database")
	}
	return err
}

func kindOf(err error) errs.Kind {
	if p, ok := errors.AsType[*pgconn.PgError](err); ok {
		return kindOfCode(p.Code)
	}
	if isConnection(err) {
		return errs.Unavailable
	}
	return ""
}

// isConnection reports whether err says that the database cannot be reached or went away.
func isConnection(err error) bool {
	var (
		connect *pgconn.ConnectError
		network net.Error
	)
	return errors.As(err, &connect) || errors.As(err, &network) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, puddle.ErrClosedPool) || pgconn.SafeToRetry(err) ||
		strings.Contains(err.Error(), "conn closed") // the driver has no type for it
}

// kindOfCode maps the whole code, or else its class, the first two characters.
func kindOfCode(code string) errs.Kind {
	switch code {
	case CodeConflict, CodeClosed, CodeDeposed, codeSerialization, codeDeadlock:
		return errs.Conflict
	case CodeExists, "23505": // unique violation
		return errs.AlreadyExists
	case CodeForbidden, "42501": // insufficient privilege
		return errs.Forbidden
	case CodeUnknownType, "23514", "23502": // check violation, null where none may be
		return errs.Invalid
	case CodeComingType, "25P03", "25P04", "55P03": // idle in transaction, lock not available in time
		return errs.Unavailable
	case codeCancelled: // its statement takes too long, or a person ended it: the database is there
		return errs.Internal
	case "28000", "28P01", "3D000": // credential refused, no such database
		return errs.Unauthenticated
	}
	switch code[:min(2, len(code))] {
	case "08", "53", "57", "58": // connection, resources, intervention such as a shutdown, system
		return errs.Unavailable
	case "22": // data exceptions
		return errs.Invalid
	}
	return errs.Internal
}
