// Package ruletest takes refusals apart for tests.
package ruletest

import (
	"errors"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// All returns every violation in err's chain: those of a *rule.Error, or the one *errs.Error with a field, or none.
func All(err error) []*errs.Error {
	if many, ok := errors.AsType[*rule.Error](err); ok {
		return many.Violations
	}
	if one, ok := errors.AsType[*errs.Error](err); ok && (one.Field != "" || one.Rule != "") {
		return []*errs.Error{one}
	}
	return nil
}
