// Package errs names the few kinds of error that cross a package boundary.
//
// A kind says what the caller can do about it; the text says what happened. Transport codes are
// not known here: libs/httpserver holds the one table from kinds to HTTP status.
package errs

import (
	"errors"
	"fmt"
)

// Kind is what a caller can do about an error.
type Kind string

// The closed set of kinds.
const (
	// Internal is a fault of Chandler itself; the caller can only report it.
	Internal Kind = "internal"
	// Invalid is input that breaks a rule; sending it again unchanged fails again.
	Invalid Kind = "invalid"
	// Unprocessable is well-formed input that contradicts what Chandler knows, such as an unknown channel.
	Unprocessable Kind = "unprocessable"
	// TooLarge is input beyond a named limit.
	TooLarge Kind = "too-large"
	// Unauthenticated is a request without a valid credential.
	Unauthenticated Kind = "unauthenticated"
	// Forbidden is a request that no role of the caller allows.
	Forbidden Kind = "forbidden"
	// NotFound is a name that nothing bears.
	NotFound Kind = "not-found"
	// AlreadyExists is a create of something that is there.
	AlreadyExists Kind = "already-exists"
	// Conflict is a change decided on a state that has moved on; read again, decide again.
	Conflict Kind = "conflict"
	// Unavailable is a part that is away for now; the same call may succeed later.
	Unavailable Kind = "unavailable"
)

// Error is an error with a kind. Field, where set, names the place in the input (a JSON pointer, a
// flag, a file:line), and Rule the rule that it breaks.
type Error struct {
	Kind  Kind
	Field string
	Rule  string
	msg   string
	cause error
}

func (e *Error) Error() string {
	if e.cause == nil {
		return e.msg
	}
	return e.msg + ": " + e.cause.Error()
}

func (e *Error) Unwrap() error { return e.cause }

// New returns an error of kind k.
func New(k Kind, format string, args ...any) *Error {
	return &Error{Kind: k, msg: fmt.Sprintf(format, args...)}
}

// Wrap returns an error of kind k that says what was attempted and keeps cause. It returns nil for a nil cause.
func Wrap(k Kind, cause error, format string, args ...any) error {
	if cause == nil {
		return nil
	}
	return &Error{Kind: k, msg: fmt.Sprintf(format, args...), cause: cause}
}

// At returns a copy of e that names the place in the input and the rule that it breaks.
func (e *Error) At(field, rule string) *Error {
	c := *e
	c.Field, c.Rule = field, rule
	return &c
}

// KindOf returns the kind of the outermost *Error in err's chain, Internal where there is none, and "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// Is reports whether err is of kind k.
func Is(err error, k Kind) bool { return err != nil && KindOf(err) == k }
