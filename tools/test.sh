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
budget=()

step() { printf '\n== %s (%d s)\n' "$1" "$SECONDS"; }

# All packages in the order in which they are begun: the one that takes longest first, so that it does not run alone at
# the end, then what waits for processes and clusters, then the many small ones, which fill the rest.
packages() {
  local all
  all=$(go list work)
  grep -x '.*/test/executor' <<<"$all"
  grep '/services/' <<<"$all"
  grep '/test/' <<<"$all" | grep -vx '.*/test/executor'
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

# One test goes through some 40 lives of an operator, each with a crash at another point. It is as long as ten others, and the
# executors in it are those of the others: it runs beside them, without the detector.
crashes='^TestCrashAtEveryPoint$'

step "what the machine needs"
tools/prepare.sh
step "helm, which the tests of the chart run"
make helm
step "programs of test clusters"
make testrun clusters
step "services, which the tests of the whole start"
make stack
step "tests"
if [ -n "${TEST_BUDGET_SECONDS:-}" ]; then
  left=$((TEST_BUDGET_SECONDS - SECONDS - report))
  if [ "$left" -le 60 ]; then
    echo "the steps before the tests took $SECONDS of $TEST_BUDGET_SECONDS seconds: nothing is left for the tests" >&2
    exit 1
  fi
  budget=(-budget "${left}s")
fi
common=(-shuffle=on -vet=off -timeout "${TEST_TIMEOUT:-4h}") # make check vets
mapfile -t plain < <(without_detector)
mapfile -t raced < <(packages | grep -vxF -f <(printf '%s\n' "${plain[@]:-none}"))
if [ "${#plain[@]}" = 0 ]; then
  "$TESTRUN" "${budget[@]}" -- -race "${common[@]}" -p "${TEST_PACKAGES:-2}" "${raced[@]}"
else
  "$TESTRUN" "${budget[@]}" -- -race "${common[@]}" -skip "$crashes" -p "${TEST_PACKAGES:-2}" "${raced[@]}" \
    -- "${common[@]}" -run "$crashes" ./test/executor \
    -- "${common[@]}" -p 1 "${plain[@]}"
fi
