#!/usr/bin/env bash
# make test: every test with the race detector. What they need is built first, so that no bound of a test holds for a
# compiler. Nothing here bounds the whole, since a machine may be slow; CI does (.ci/run):
#
#   TEST_BUDGET_SECONDS    longest time of all of it; none without it
#   TEST_TIMEOUT           longest time of one package, so that a test that hangs tells where
#   TEST_PACKAGES          packages tested at a time
set -euo pipefail
cd "$(dirname "$0")/.."

report=30 # seconds of the budget that stay for the report
budget=()

step() { printf '\n== %s (%d s)\n' "$1" "$SECONDS"; }

# Packages in the order in which they are begun: the one that takes longest first, so that it does not run alone at the
# end, then what waits for processes and clusters, then the many small ones, which fill the rest.
packages() {
  local all
  all=$(go list work)
  grep -x '.*/test/executor' <<<"$all"
  grep '/services/' <<<"$all"
  grep '/test/' <<<"$all" | grep -vx '.*/test/executor'
  grep -v -e '/services/' -e '/test/' <<<"$all"
}

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
mapfile -t list < <(packages)
# make check vets.
CGO_ENABLED=1 "$TESTRUN" "${budget[@]}" -- -race -vet=off -shuffle=on -timeout "${TEST_TIMEOUT:-4h}" -p "${TEST_PACKAGES:-2}" "${list[@]}"
