#!/usr/bin/env bash
# make test: every test, with the race detector where goroutines share something. What they need is built first, so that
# no bound of a test holds for a compiler. Nothing here bounds the whole, since a machine may be slow; CI does (.ci/run):
#
#   TEST_BUDGET_SECONDS    longest time of all of it; none without it
#   TEST_TIMEOUT           longest time of one package, so that a test that hangs tells where
#   TEST_PACKAGES          packages tested at a time with the race detector, beside those that are tested without
#   TEST_RACE=all          every package with the race detector
set -euo pipefail
cd "$(dirname "$0")/.."

report=30 # seconds of the budget that stay for the report

# remaining prints the flag of testrun for what is left of the budget; nothing without a budget.
remaining() {
  [ -n "${TEST_BUDGET_SECONDS:-}" ] || return 0
  local left=$((TEST_BUDGET_SECONDS - SECONDS - report))
  if [ "$left" -le 60 ]; then
    echo "$SECONDS of $TEST_BUDGET_SECONDS seconds are used up: not enough is left for the tests" >&2
    exit 1
  fi
  echo "-budget=${left}s"
}

step() { printf '\n== %s (%d s)\n' "$1" "$SECONDS"; }

# Packages but test/executor in the order in which they are begun: what waits for processes and clusters first, then the
# many small ones, which fill the rest.
packages() {
  local all
  all=$(go list work | grep -v '/test/executor$')
  grep '/services/' <<<"$all"
  grep '/test/' <<<"$all"
  grep -v -e '/services/' -e '/test/' <<<"$all"
}

# What the race detector would find nothing in, and makes ten times as slow: tests that wait for the processes that they
# started, and pure packages, none of whose files, tests included, knows a goroutine, a lock, a channel or a context. Who
# calls a pure function from several goroutines is tested with the detector. Packages that choose less to do under it keep
# it: make check does all of that without.
waits='/test/(e2e|bundles|deploy)$'
shares='^[[:space:]]*go [a-z]|\<chan\>|"(sync|sync/atomic|context|net/[a-z/]+|os/exec)"|^//go:build race$'
without_detector() {
  [ "${TEST_RACE:-}" != all ] || return 0
  go list -f '{{.ImportPath}} {{.Dir}} {{len .TestGoFiles}}{{len .XTestGoFiles}}' work | while read -r path dir tests; do
    if [[ $path =~ $waits ]] || { [ "$tests" != 00 ] && ! grep -qE "$shares" "$dir"/*.go; }; then echo "$path"; fi
  done
}

# Packages whose tests begin no process: no PostgreSQL, NATS, cluster or service. Go takes the result of those of which
# nothing has changed from its cache, for which they have to run in one order.
processes='/chandler/(libs/pg/pglocal|libs/bus/natslocal|test/testcluster|test/stack|test/internal/proc)( |$)'
without_processes() {
  go list -test -f '{{.ImportPath}} {{join .Deps " "}}' work | grep -E '^[^ ]+\.test ' |
    grep -vE "$processes" | sed 's/\.test .*//' | grep -vE "$waits"
}

# The tests of test/executor in which several executors, many namespaces or broken connections are at work at once. They have
# the detector; the others drive the same executors through one operator's story at a time and wait for the cluster. One of
# these goes through some 40 lives of an operator, each with a crash at another point.
together='^Test(FaultsAtEveryStep|TwoCandidates|PausedHolderIsRefused|Unreachable|HalfOpenConnections|APIServerRestarts|LetGo|'
together+='Groups|Scopes|Shared|SharedCrash|Tenants|Mirror|Machine|Stopped|Drift)$'

step "what the machine needs"
tools/prepare.sh
step "helm, which the tests of the chart run"
make helm
step "programs of test clusters"
make testrun clusters
step "services, which the tests of the whole start"
make stack
step "tests that need nothing but Go"
at_once=${TEST_PACKAGES:-2}
long=4h # of a package, where nobody says otherwise: a machine may be slow
common=(-vet=off -timeout "$long") # make check vets; the same time always, which is part of what go knows a result by
export GORACE="${GORACE:-atexit_sleep_ms=100}" # a second at the end of each package else, which nobody waits for
lists=$(mktemp -d)
trap 'rm -rf "$lists"' EXIT
without_detector | sort >"$lists/plain"
without_processes | sort >"$lists/alone"
mapfile -t pure < <(comm -12 "$lists/plain" "$lists/alone")
mapfile -t alone < <(comm -13 "$lists/plain" "$lists/alone")
mapfile -t waiting < <(comm -23 "$lists/plain" "$lists/alone")
mapfile -t others < <(packages | grep -vxF -f "$lists/plain" -f "$lists/alone")

failed=0
budget=$(remaining)
"$TESTRUN" $budget -- -race "${common[@]}" -p "$at_once" "${alone[@]}" \
  ${pure[0]:+-- "${common[@]}" -p 1 "${pure[@]}"} || failed=1
step "tests with databases, buses, services and clusters"
budget=$(remaining)
shuffled=(-vet=off -timeout "${TEST_TIMEOUT:-$long}" -shuffle=on)
if [ "${TEST_RACE:-}" = all ]; then
  "$TESTRUN" $budget -- -race "${shuffled[@]}" -p "$at_once" ./test/executor "${others[@]}" || failed=1
else
  "$TESTRUN" $budget -- -race "${shuffled[@]}" -run "$together" ./test/executor -- "${shuffled[@]}" -skip "$together" ./test/executor \
    -- -race "${shuffled[@]}" -p "$at_once" "${others[@]}" -- "${shuffled[@]}" -p 1 "${waiting[@]}" || failed=1
fi
exit "$failed"
