#!/usr/bin/env bash
# make test: every test, with the race detector where goroutines share something. make test-PART: one part of them.
#
#   tools/test.sh [PART...]      called by make, which says where testrun and helm are
#
#   pure       packages whose tests start no process
#   services   the other packages of libs, services and cmd: PostgreSQL, NATS
#   executor   test/executor: executors on real API servers
#   e2e        test/e2e: four services, NATS, PostgreSQL, a cluster
#   bundles    test/bundles: published operators on a real API server
#   deploy     test/deploy: chart, compose file, migrations
#   tools      what tests are made with: test clusters, the stack, the demo
#
# What the tests need is built first, so that no bound of a test holds for a compiler. Nothing here bounds the whole, since
# a machine may be slow; CI does (.ci/run):
#
#   TEST_BUDGET_SECONDS    longest time of all of it; none without it
#   TEST_TIMEOUT           longest time of one package, so that a test that hangs shows where
#   TEST_PACKAGES          packages tested at a time, of those with processes and of those with the race detector
#   TEST_RACE=all          every package with the race detector
set -euo pipefail
cd "$(dirname "$0")/.."

parts=("$@")
[ $# -gt 0 ] || parts=(pure services executor e2e bundles deploy tools)
wanted() { [[ " ${parts[*]} " == *" $1 "* ]]; }
# needed PART...: whether one of them is wanted.
needed() { local p; for p in "$@"; do if wanted "$p"; then return 0; fi; done; return 1; }
for p in "${parts[@]}"; do
  case $p in pure | services | executor | e2e | bundles | deploy | tools) ;; *)
    echo "there is no part $p; the head of $0 lists them" >&2
    exit 2
    ;;
  esac
done

# Files of tests lie in memory where there is room for them: a store of NATS, a database and etcd are hundreds of files, and
# making them on disk takes a tenth of the processor time of such tests. What compilers write stays on disk.
memory=/dev/shm
room=$((6 << 20)) # kB
if [ -z "${TMPDIR:-}" ] && [ "$(stat -f -c %T $memory 2>/dev/null)" = tmpfs ] &&
  [ "$(df -k --output=avail $memory | tail -1)" -gt $room ]; then
  export GOTMPDIR=${GOTMPDIR:-/tmp} TMPDIR=$memory/chandler-test-$(id -u)
  mkdir -p "$TMPDIR"
fi

# Where there is memory for it, compilers and tests collect garbage later, which takes a fourteenth of their processor time.
ample=$((14 << 20)) # kB
if [ -z "${GOGC:-}" ] && [ "$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo 2>/dev/null || echo 0)" -gt $ample ]; then
  export GOGC=400 GOMEMLIMIT=${GOMEMLIMIT:-2GiB}
fi

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

# part prints the lines, each a package of the workspace, that belong to a part. Those without processes are in pure.
part() {
  case $1 in
    services) grep '/services/' || true ;;
    libraries) grep -v -e '/services/' -e '/test/' || true ;; # with services, but later: they are many small ones
    tools) grep '/test/' | grep -vE '/test/(executor|e2e|bundles|deploy)$' || true ;;
    *) grep "/test/$1\$" || true ;;
  esac
}

# What the race detector would find nothing in, and makes ten times as slow: tests that wait for the processes that they
# started, the test of the sources, which runs go list and shares nothing, and pure packages, none of whose files, tests
# included, knows a goroutine, a lock, a channel, a context or a connection. Who calls a pure function from several goroutines
# is tested with the detector.
sources='/libs/archtest$'
waits='/test/(e2e|bundles|deploy)$'
shares='^[[:space:]]*go [a-z]|\<chan\>|"(sync|sync/atomic|context|net|net/(http|rpc|smtp)[a-z/]*|os/exec)"'
without_detector() {
  [ "${TEST_RACE:-}" != all ] || return 0
  go list -f '{{.ImportPath}} {{.Dir}} {{len .TestGoFiles}}{{len .XTestGoFiles}}' work | while read -r path dir tests; do
    if [[ $path =~ $waits|$sources ]] || { [ "$tests" != 00 ] && ! grep -qE "$shares" "$dir"/*.go; }; then echo "$path"; fi
  done
}

# In packages without processes, tests with these words in their names run without the detector: Real, which read published
# catalogs, where one bundle is like the next, and Heap, which measure how much memory something large takes. What goroutines
# share shows in the other tests of their packages.
large='(Real|Heap)([^a-z]|$)'
with_large() {
  local path dir
  go list -f '{{.ImportPath}} {{.Dir}}' "$@" | while read -r path dir; do
    if grep -qE "^func Test[A-Za-z0-9_]*$large" "$dir"/*_test.go; then echo "$path"; fi
  done
}

# Packages whose tests start no process: no PostgreSQL, NATS, cluster or service. Go takes the result of those of which
# nothing has changed from its cache, for which they have to run in one order.
processes='/chandler/(libs/pg/pglocal|libs/bus/natslocal|test/testcluster|test/stack|test/internal/proc)( |$)'
without_processes() {
  go list -test -f '{{.ImportPath}} {{join .Deps " "}}' work | grep -E '^[^ ]+\.test ' |
    grep -vE "$processes" | sed 's/\.test .*//' | grep -vE "$waits"
}

# The tests of test/executor in which several executors, many namespaces or broken connections are at work at once. They have
# the detector; the others drive the same executors through one operator's story at a time, or one case after the other, and
# wait for the cluster. One of these goes through some 20 lives of an operator, each with three crashes at other points.
together='^Test(FaultsAtEveryStep|TwoCandidates|PausedHolderIsRefused|Unreachable|HalfOpenConnections|APIServerRestarts|LetGo|'
together+='Shared|Tenants|Mirror|Stopped)$'

# The tests that put every kind of request to a gateway, thousands of them: five times as slow with the detector, which sees
# the same handlers in the other tests of their package.
requests='^Test(Matrix|Contract)$'
gateway=./services/gateway/app

step "what the machine needs"
if needed services e2e deploy tools; then tools/prepare.sh; else tools/prepare.sh compiler; fi
if needed executor e2e bundles deploy tools; then
  step "programs of test clusters"
  make clusters
fi
programs=(testrun)
if wanted deploy; then programs+=(helm); fi # the tests of the chart run it
if needed e2e tools; then programs+=(stack); fi # the tests of the whole start it
if wanted services && { command -v node >/dev/null || [ "${CI:-}" = true ]; }; then programs+=(client); fi
step "programs that the tests run: ${programs[*]}"
make --jobs=2 --output-sync=target "${programs[@]}" # npm, tsc and the linker use one processor each

width=${TEST_PACKAGES:-2}
long=4h # of a package, where nobody says otherwise: a machine may be slow
common=(-vet=off -timeout "$long") # make check vets; the same time always, which is part of what go knows a result by
export GORACE="${GORACE:-atexit_sleep_ms=100}" # a second at the end of each package else, which nobody waits for
lists=$(mktemp -d)
trap 'rm -rf "$lists"' EXIT
without_detector | sort >"$lists/plain"
without_processes | sort >"$lists/pure"
go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' work | grep -vxF -f "$lists/pure" >"$lists/others"

# What takes longest begins first, then what waits for processes and clusters; the many small packages fill the rest.
longest='/(services/(gateway|resolver)/app|cmd/chandler/cli)$'
{
  if wanted services; then part services <"$lists/others"; fi
  for p in e2e bundles deploy tools; do if wanted $p; then part $p <"$lists/others"; fi; done
  if wanted services; then part libraries <"$lists/others"; fi
} >"$lists/wanted"
chosen=$(grep -E "$longest" "$lists/wanted" || true; grep -vE "$longest" "$lists/wanted" || true)
mapfile -t raced < <(grep . <<<"$chosen" | grep -vxF -f "$lists/plain")
mapfile -t plain < <(grep . <<<"$chosen" | grep -xF -f "$lists/plain")
pure_raced=() pure_plain=() pure_large=()
if wanted pure; then
  mapfile -t pure_raced < <(comm -13 "$lists/plain" "$lists/pure")
  mapfile -t pure_plain < <(comm -12 "$lists/plain" "$lists/pure")
  mapfile -t pure_large < <(with_large "${pure_raced[@]}")
fi
shuffled=(-vet=off -timeout "${TEST_TIMEOUT:-$long}" -shuffle=on)

# Runs of go test that testrun starts at once, each with what begins when it has ended. Tests with processes also wait, and
# so take longest: they are in front, and what only computes comes after those that end early.
runs=()
at_once() { next=--; } # what is added next begins at once
add() {                # else when what was added before it has ended
  runs+=("$next" "$@")
  next=--then
}
if wanted executor && [ "${TEST_RACE:-}" = all ]; then
  at_once && add -race "${shuffled[@]}" ./test/executor
elif wanted executor; then
  at_once && add -race "${shuffled[@]}" -run "$together" ./test/executor
  at_once && add "${shuffled[@]}" -skip "$together" ./test/executor
fi
at_once
skipped=()
if wanted services && [ "${TEST_RACE:-}" != all ]; then
  skipped=(-skip "$requests")
  add "${shuffled[@]}" -run "$requests" "$gateway"
fi
[ -z "${pure_large[0]:-}" ] || add "${common[@]}" -p 1 -run "$large" "${pure_large[@]}"
at_once
[ -z "${raced[0]:-}" ] || add -race "${shuffled[@]}" "${skipped[@]}" -p "$width" "${raced[@]}"
[ -z "${pure_raced[0]:-}" ] || add -race "${common[@]}" -p "$width" -skip "$large" "${pure_raced[@]}"
at_once
[ -z "${plain[0]:-}" ] || add "${shuffled[@]}" -p "$width" "${plain[@]}"
[ -z "${pure_plain[0]:-}" ] || add "${common[@]}" -p 1 "${pure_plain[@]}"

# Several runs would compile what they share at the same time, each for itself.
detected=("${raced[@]}" "${pure_raced[@]}")
if wanted executor; then detected+=(./test/executor); fi
if [ -n "${detected[0]:-}" ]; then
  step "packages with the race detector"
  CGO_ENABLED=1 go list -race -test -deps -export -f '' "${detected[@]}" >/dev/null
fi

step "tests"
budget=$(remaining)
"$TESTRUN" $budget "${runs[@]}"
