package cel

import (
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/overloads"
)

// What a rule may name beside the language itself.
const (
	variable        = "properties"
	versionFunction = "semver_compare"
	matchFunction   = overloads.Matches
)

// environment is made for the first rule: with it that takes 50 ms and 300 KB.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewCustomEnv(
		cel.StdLib(cel.StdLibSubset(&env.LibrarySubset{ExcludeFunctions: excluded()})),
		cel.DefaultUTCTimeZone(true),
		cel.Variable(variable, cel.ListType(cel.MapType(cel.StringType, cel.AnyType))),
		cel.Function(versionFunction,
			cel.Overload(versionFunction, []*cel.Type{cel.AnyType, cel.AnyType}, cel.IntType),
			cel.SingletonBinaryBinding(compareVersions)),
		cel.Function(matchFunction,
			cel.Overload(overloads.Matches, []*cel.Type{cel.StringType, cel.StringType}, cel.BoolType),
			cel.MemberOverload(overloads.MatchesString, []*cel.Type{cel.StringType, cel.StringType}, cel.BoolType),
			cel.SingletonBinaryBinding(matches)),
		cel.ParserExpressionSizeLimit(MaxRuleBytes),
		cel.ParserRecursionLimit(maxDepth),
		cel.ParserErrorRecoveryLimit(maxRecoveries),
	)
})

// excluded are the parts of the language that a rule cannot use: time zones by name are read from the machine
// that evaluates, and a regular expression is given bounds of its own.
func excluded() []*env.Function {
	out := []*env.Function{{Name: matchFunction}}
	for name, overload := range map[string]string{
		overloads.TimeGetFullYear:     overloads.TimestampToYearWithTz,
		overloads.TimeGetMonth:        overloads.TimestampToMonthWithTz,
		overloads.TimeGetDayOfYear:    overloads.TimestampToDayOfYearWithTz,
		overloads.TimeGetDayOfMonth:   overloads.TimestampToDayOfMonthZeroBasedWithTz,
		overloads.TimeGetDate:         overloads.TimestampToDayOfMonthOneBasedWithTz,
		overloads.TimeGetDayOfWeek:    overloads.TimestampToDayOfWeekWithTz,
		overloads.TimeGetHours:        overloads.TimestampToHoursWithTz,
		overloads.TimeGetMinutes:      overloads.TimestampToMinutesWithTz,
		overloads.TimeGetSeconds:      overloads.TimestampToSecondsWithTz,
		overloads.TimeGetMilliseconds: overloads.TimestampToMillisecondsWithTz,
	} {
		out = append(out, &env.Function{Name: name, Overloads: []*env.Overload{{ID: overload}}})
	}
	return out
}
