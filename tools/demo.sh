#!/usr/bin/env bash
# Compiles the program of the demo, which needs nothing but the standard library, and runs it. It compiles the rest itself.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${CHANDLER_CACHE:-.cache}/demo/demo
[[ $program == /* ]] || program=$PWD/$program
[ -e "$program" ] || [ "${1:-}" = down ] || echo "compiling the demo …"
[ -e "$program" ] || [ "${1:-}" != down ] || [ -e .demo ] || exit 0 # nothing was ever started here
# Without the workspace no other module has to be looked at, and without cgo no C compiler is needed.
(cd test && GOWORK=off GOFLAGS=-mod=readonly CGO_ENABLED=0 go build -buildvcs=false -o "$program" ./demo)
exec "$program" "$@"
