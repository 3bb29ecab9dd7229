#!/usr/bin/env bash
# make test: everything, within one budget of time. What tools and checks use of it, the tests do not have.
set -euo pipefail
cd "$(dirname "$0")/.."

# 40 minutes on two cores, with everything built from nothing; half a minute stays for the report.
budget=${TEST_BUDGET_SECONDS:-2400}
report=30

step() { printf '\n== %s (%d s)\n' "$1" "$SECONDS"; }

step "what the machine needs"
tools/prepare.sh
step "check"
make check
step "verify"
make verify
step "programs of test clusters"
make testrun clusters
step "tests"
left=$((budget - SECONDS - report))
if [ "$left" -le 60 ]; then
  echo "the steps before the tests took $SECONDS of $budget seconds: nothing is left for the tests" >&2
  exit 1
fi
CGO_ENABLED=1 "$TESTRUN" -budget "${left}s" -- -race -shuffle=on -timeout "${TEST_TIMEOUT:-25m}" -p "${TEST_PACKAGES:-2}" work
