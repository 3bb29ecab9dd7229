#!/usr/bin/env bash
# make fresh: what a new machine does. A clean clone of what is committed, with empty caches of modules, builds and
# tools, runs make demo and make test, each twice, and prints what they took.
#
#   FRESH=demo|test    only that half
#
# Everything lies in a temporary folder (TMPDIR moves it; the tests need some 15 GB) and is removed at the end.
set -euo pipefail
cd "$(dirname "$0")/.."

half=${FRESH:-all}
case $half in demo | test | all) ;; *)
  echo "FRESH is $half; it may be demo or test, or nothing for both" >&2
  exit 2
  ;;
esac

work=$(mktemp -d)
chmod 755 "$work" # PostgreSQL runs as another user where we are root
export GOMODCACHE=$work/mod GOCACHE=$work/build XDG_CACHE_HOME=$work/cache npm_config_cache=$work/npm
unset CHANDLER_CACHE GOFLAGS HELM TESTRUN MAKEFLAGS MAKELEVEL
clone=$work/chandler

cleanup() {
  set +e # whatever fails, go on
  if [ -d "$clone" ]; then
    (cd "$clone" && make demo-down) >/dev/null 2>&1
  fi
  go clean -modcache # its files are read-only
  cd / && rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

spell() { printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); }

rows=()
# run TITLE GOAL TARGET: makes a target and writes down what it took.
run() {
  local title=$1 goal=$2 target=$3 began=$SECONDS
  printf '\n== %s\n' "$title"
  if ! make "$target" 2>&1 | tee "$work/log"; then
    print_table
    echo "FAIL: make $target ($title)" >&2
    exit 1
  fi
  rows+=("$(printf '| %-38s | %12s | %9s |' "$title" "$(spell $((SECONDS - began)))" "$goal")")
  if [ "$target" = demo ]; then
    # The time behind the title of the first scene; make and compiling the demo itself come on top.
    rows+=("$(printf '| %-38s | %12s | %9s |' "  of this until the first scene" "$(sed -n 's/^1\. .*(\(.*\))$/\1/p' "$work/log")" "")")
  fi
}

print_table() {
  printf '\n%s on %s cores, load %s\n' "$(uname -m)" "$(nproc)" "$(cut -d' ' -f1-3 /proc/loadavg 2>/dev/null || echo unknown)"
  printf '| %-38s | %12s | %9s |\n' what took goal
  printf '|---|---|---|\n'
  printf '%s\n' "${rows[@]}"
}

git clone --quiet . "$clone"
echo "a clean clone of $(git describe --always) in $clone; what is not committed is not in it"
cd "$clone"

if [ "$half" != test ]; then
  run "make demo, empty caches" "9 min" demo
  run "make demo, warm" "30 s" demo
  run "make demo-down" "" demo-down
fi
if [ "$half" != demo ]; then
  run "make test, empty build cache" "35 min" test
  run "make test, warm" "15 min" test
fi
print_table
